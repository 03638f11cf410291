"""Kernels of a shard are timed once: whatever was asked before, the answer is that of a first question."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import numpy as np
import pytest
from tests.training.hand import CLUSTER, H100, JOB, KIT, ROUTED, SHELF

from datahall.cluster.cluster import Cluster
from datahall.training.adapters.adapters import Adapters
from datahall.training.layout.columns import Space
from datahall.training.layout.layout import Layout
from datahall.training.step import step
from datahall.training.step.framework import Framework
from datahall.training.step.step import Job, kernel_times
from datahall.workload.precision import Precision

LAYOUTS = [
    Layout(tp=tp, dp=64 // tp, micro_batch=batch, recompute=recompute)
    for tp in (1, 2, 8)
    for batch in (1, 2)
    for recompute in ("none", "full")
]
FP8 = Precision(compute="fp8", weights="fp8", activations="fp8")
ON_H200 = msgspec.structs.replace(CLUSTER, chip=SHELF.chip("h200-sxm"))
SLOWER = msgspec.structs.replace(
    CLUSTER, chip=msgspec.structs.replace(H100, memory_bytes_per_s=H100.memory_bytes_per_s / 2)
)
ASKED: dict[str, tuple[Job, Cluster, Framework]] = {
    "as it is": (JOB, CLUSTER, KIT),
    "another batch": (msgspec.structs.replace(JOB, global_batch=4 * JOB.global_batch), CLUSTER, KIT),
    "longer": (msgspec.structs.replace(JOB, seq=2 * JOB.seq), CLUSTER, KIT),
    "fp8": (msgspec.structs.replace(JOB, precision=FP8), CLUSTER, KIT),
    "adapters": (msgspec.structs.replace(JOB, adapters=Adapters(rank=16, targets="attention")), CLUSTER, KIT),
    "ahead": (msgspec.structs.replace(JOB, num_ahead=1), CLUSTER, KIT),
    "experts": (ROUTED, CLUSTER, KIT),
    "uneven experts": (msgspec.structs.replace(ROUTED, imbalance=1.5), CLUSTER, KIT),
    "another chip": (JOB, ON_H200, KIT),
    "a slower chip of the same name": (JOB, SLOWER, KIT),
    "another framework": (JOB, CLUSTER, msgspec.structs.replace(KIT, compute_factor=2.0 * KIT.compute_factor)),
    "unfused": (JOB, CLUSTER, msgspec.structs.replace(KIT, flash_attention=False)),
}  # fmt: skip


@pytest.fixture(autouse=True)
def nothing_remembered() -> Iterator[None]:
    kept = step._REMEMBERED[:]
    step._REMEMBERED.clear()
    yield
    step._REMEMBERED[:] = kept


def asked(name: str, layouts: list[Layout] = LAYOUTS) -> np.ndarray:
    job, cluster, kit = ASKED[name]
    return np.array(kernel_times(job, cluster, Space.of(layouts), kit))


def first_asked(name: str, layouts: list[Layout] = LAYOUTS) -> np.ndarray:
    step._REMEMBERED.clear()
    return asked(name, layouts)


def test_no_question_is_given_the_times_of_another() -> None:
    first = {name: first_asked(name) for name in ASKED}
    step._REMEMBERED.clear()
    for _ in range(2):  # the second time all are remembered
        for name, times in first.items():
            assert (asked(name) == times).all(), name


def test_what_is_remembered_in_part_is_timed_for_the_rest() -> None:
    whole = first_asked("as it is")
    step._REMEMBERED.clear()
    some = LAYOUTS[1::3]
    assert (asked("as it is", some) == whole[:, 1::3]).all()
    assert (asked("as it is") == whole).all()
    assert (asked("as it is", LAYOUTS[::-1]) == whole[:, ::-1]).all()


def test_a_shard_is_timed_once_for_every_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    asked("as it is")
    monkeypatch.setattr(step, "shard_times", None)
    asked("another batch")
    asked("as it is", LAYOUTS[:1])


def test_what_was_asked_last_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(step, "MOST_JOBS", 2)
    for name in ("as it is", "longer", "as it is", "fp8"):
        asked(name)
    assert [one.job.seq for one in step._REMEMBERED] == [JOB.seq, JOB.seq]
    assert step._REMEMBERED[1].job == msgspec.structs.replace(JOB, global_batch=1)
    asked("longer")
    assert [one.job.seq for one in step._REMEMBERED] == [2 * JOB.seq, JOB.seq]
