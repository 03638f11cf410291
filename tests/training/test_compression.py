"""Gradient compression: fewer bytes on the wire, more work on the chip, an error to keep."""

import msgspec
import pytest

from datahall.catalog import Catalog
from datahall.cluster.cluster import cluster_of
from datahall.scenario.words import COMPRESSIONS
from datahall.training.layout.columns import Space
from datahall.training.layout.layout import Layout
from datahall.training.memory.bookkeeping import BOOKS
from datahall.training.memory.peak import peak_memory
from datahall.training.step.compression import METHODS, wire_bytes
from datahall.training.step.framework import framework
from datahall.training.step.step import Job, step_times

SHELF = Catalog(user=False)
GPT, H100 = SHELF.model("gpt-3-175b"), SHELF.chip("h100-sxm")
WIDE = msgspec.structs.replace(framework("nemo"), gradient_bytes=4.0, data_exposed=1.0)
JOB = Job(model=GPT, seq=2048, global_batch=64)


def data_s(name: str, nic: float = 0.0, zero: int = 1) -> float:
    cluster = cluster_of(H100, 512, nic_bytes_per_s=nic)
    space = Space.of(Layout(tp=8, dp=64, zero=zero, compression=name))
    return float(step_times(JOB, cluster, space, WIDE).data_s[0])


def test_bytes_on_the_wire() -> None:
    sizes = {name: wire_bytes(METHODS.get(name), GPT, 4.0) for name in COMPRESSIONS}
    assert sizes["none"] == 4.0
    assert sizes["bf16"] == 2.0
    assert sizes["fp8"] == pytest.approx(1.03, abs=0.01)
    assert 4.0 / sizes["1-bit"] == pytest.approx(31.0, abs=0.1)
    # rank 4 on 12,288 × 49,152: 4·4·(m + n)/(m·n)
    assert sizes["power-sgd"] == pytest.approx(16 * (12288 + 49152) / (12288 * 49152))


def test_sixteen_bits_gain_nothing_where_gradients_have_them_already() -> None:
    narrow = msgspec.structs.replace(WIDE, gradient_bytes=2.0)
    cluster = cluster_of(H100, 512)
    both = Space.of([Layout(tp=8, dp=64), Layout(tp=8, dp=64, compression="bf16")])
    plain, cast = step_times(JOB, cluster, both, narrow).step_s
    assert plain == cast


def test_a_slow_network_gains_and_a_fast_one_pays_for_the_kernels() -> None:
    slow = {name: data_s(name, nic=3e9) for name in COMPRESSIONS}
    assert slow["none"] > slow["bf16"] > slow["fp8"] > slow["1-bit"]
    kernels_s = data_s("1-bit", nic=1e15) - data_s("none", nic=1e15)
    assert data_s("1-bit", nic=1e15) > 0
    assert kernels_s < data_s("none", nic=3e9)


def test_the_error_that_is_fed_back_takes_memory() -> None:
    space = Space.of([Layout(tp=8, dp=64, compression=name) for name in ("none", "fp8", "1-bit")])
    none, fp8, one_bit = peak_memory(JOB, H100, space, BOOKS["nemo"]).gradient_bytes
    assert none == fp8
    assert one_bit == pytest.approx(2 * none, rel=0.01)  # 4 bytes beside the 4 of a gradient
