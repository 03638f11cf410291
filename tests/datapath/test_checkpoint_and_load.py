"""The burst of a checkpoint, a cold start, and what text needs: worked out by hand and against published figures."""

from __future__ import annotations

from math import inf
from typing import Any

import msgspec
import pytest
from tests.datapath.cases import job, store

from datahall.answers.ask import form_of
from datahall.catalog import load
from datahall.cluster.host import Host, host_of
from datahall.datapath import demand
from datahall.datapath.checkpoint import busy_fraction, drain_s, write_bytes_per_s
from datahall.datapath.cold_start import Loader, load_weights, loader_of
from datahall.datapath.pipeline import Store
from datahall.datapath.sections.weights import loaded, store_of, weights_need
from datahall.inference.engine.engine import engine
from datahall.inference.engine.replica import Replica
from datahall.inference.memory import kv_pool
from datahall.planner.datapath import asked_of
from datahall.scenario.read import read_names
from datahall.workload.precision import PRESETS


def test_hosts_write_no_faster_than_their_network() -> None:
    assert write_bytes_per_s(job(), store(100)) == 2 * 10e9
    assert write_bytes_per_s(job(), store(3)) == 1.5e9
    assert write_bytes_per_s(job(), store(3, place="host")) == 2 * 3 * 0.5e9


def test_a_burst_by_hand() -> None:
    burst = store(4, checkpoint_bytes=100e9, interval_s=500.0)
    assert drain_s(job(), burst) == 50.0
    assert busy_fraction(job(), burst) == pytest.approx(0.1)
    assert busy_fraction(job(), store()) == 0.0


def test_the_checkpoint_of_jean_zay_is_written_as_it_was() -> None:
    """2.3 TB in 40 s over 384 writers: 57.5 GB/s, stas00/ml-engineering."""
    gpfs = store(read_bytes_per_s=inf, write_bytes_per_s=57.5e9, checkpoint_bytes=2.3e12, interval_s=3600.0)
    assert drain_s(job(num_chips=384), gpfs) == pytest.approx(40.0)


def test_llama_3_reads_eleven_megabytes_a_second() -> None:
    """16,384 H100 at 400 TFLOP/s: 2.7 million tokens/s of 4 bytes."""
    chip, model = load().chip("h100-sxm"), load().model("llama-3.1-405b")
    rate = 16_384 * demand.tokens_per_s(model, chip, 400e12 / chip.peak("bf16"))
    assert rate * 4 == pytest.approx(10.8e6, rel=0.05)


def test_a_token_of_llama_3_takes_six_flop_a_weight_and_attention_to_half_of_its_sequence() -> None:
    """403.75 of 405.85 billion weights multiply; 126 layers add 2 · 8,192 · 16,384 FLOP each, thrice in training."""
    chip, model = load().chip("h100-sxm"), load().model("llama-3.1-405b")
    flop = 6 * 403.75e9 + 3 * 126 * 2 * 8192 * 16_384
    assert demand.tokens_per_s(model, chip, 0.4) == pytest.approx(0.4 * 989e12 / flop, rel=1e-3)


def test_a_host_that_is_not_full_is_one_all_the_same() -> None:
    """17 chips stand in three hosts of eight, and three write through their networks."""
    assert job(num_chips=17).num_hosts == 3
    assert write_bytes_per_s(job(num_chips=17), store(100)) == 3 * 10e9


def loader(**changes: Any) -> Loader:
    usual: dict[str, Any] = {
        "num_chips": 8, "num_readers": 4, "nic_bytes_per_s": 10e9, "copy_bytes_per_s": 1e12,
    }  # fmt: skip
    return Loader(**usual | changes)


def test_plans_and_the_data_path_load_weights_alike() -> None:
    """The same model on the same eight chips, from the same store, in the same format."""
    said = {"workload": "llama-3.1-70b", "chips": "8", "chip": "h100-sxm", "mfu": "40%"}
    asked = asked_of(read_names(form_of("show datapath"), said, load()))
    chip, model = asked.chip, asked.model
    assert model is not None
    size = demand.weights_bytes(model)
    whole = Replica(model=model, chip=chip, precision=PRESETS["bf16"], engine=engine("vllm"))
    assert size == pytest.approx(kv_pool.weight_bytes(whole))
    host = host_of(chip, load().servers())
    for share in (0.0, inf):  # on drives, and where they are too small
        small = msgspec.structs.replace(host, nvme_bytes=0.0) if share else host
        from_store = store_of(small, asked.loader.num_chips, size / 8, load())
        planned = loaded(asked.loader, from_store, size / 8, 8)
        shown = load_weights(asked.loader, from_store, size)
        assert planned.load_s == pytest.approx(shown.load_s)
        if not share:
            assert planned == weights_need(load(), chip, size / 8, 8)


def test_weights_that_the_drives_do_not_hold_come_from_storage_that_all_share() -> None:
    """Eight chips with 6 GB/s and 4 TB of drives each read 48 GB/s; of what all share each has 125 MB/s, as Llama 3."""
    host = Host(nvme_bytes=4e12, nvme_bytes_per_s=6e9)
    drives, shared = (store_of(host, 8, size, load()) for size in (4e12, 4.1e12))
    assert (drives.storage.is_shared, drives.storage.read_bytes_per_s) == (False, 48e9)
    assert (shared.storage.is_shared, shared.storage.read_bytes_per_s) == (True, 1e9)


def test_weights_reach_a_chip_no_faster_than_its_link() -> None:
    slow, fast = (load().chip(name) for name in ("v100-sxm2-32gb", "h100-sxm"))
    copies = [
        loader_of(load(), chip, num_chips=8, num_readers=2, nic_bytes_per_s=50e9).copy_bytes_per_s
        for chip in (slow, fast)
    ]
    assert copies[0] <= slow.host_bytes_per_s < copies[1]


def test_weights_of_many_replicas_share_what_is_shared() -> None:
    """140 GB for each of 10 from 100 GB/s: 14 s; over a NIC of 10 GB/s: 14 s; from 10 GB/s of its own drive: 14 s."""
    shared = store(100, stream_bytes_per_s=inf)
    one, ten = (load_weights(loader(), shared, 140e9, replicas) for replicas in (1, 10))
    assert (one.binding, one.load_s, one.parts_s["storage"]) == ("network", 14.0, 1.4)
    assert one.parts_s["readers"] == pytest.approx(140 / 32 + 1e-3)
    assert (ten.binding, ten.parts_s["storage"], ten.parts_s["network"]) == ("storage", 14.0, 14.0)
    own = load_weights(loader(num_readers=64), store(10, place="host"), 140e9, 1000)
    assert (own.binding, own.load_s) == ("storage", 14.0)


def test_a_copy_to_the_chips_is_the_least_that_a_cold_start_takes() -> None:
    cached = Store(storage=load().storage("pinned"), num_units=1)
    found = load_weights(loader(copy_bytes_per_s=54.87644e9), cached, 8 * 54.87644e9)
    assert (found.binding, found.load_s) == ("copy", pytest.approx(1.0))
