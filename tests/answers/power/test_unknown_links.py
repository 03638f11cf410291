"""A chip of which nobody says how fast it writes to its host copies at one assumed rate, wherever it copies."""

from __future__ import annotations

import pytest

import datahall as dh
from datahall.answer import Answer
from datahall.catalog import load
from datahall.cluster.host import host_of

CHIPS = sorted(chip.name for chip in load().chips() if not host_of(chip).says_link)
JOB = {"model": "llama-3.1-8b", "chip": "tpu-v7x", "chips": 64, "global_batch": 64}
SLOWEST_BYTES_PER_S = 12e9  # 16 lanes of PCIe 3.0, of 15.75 GB/s on the wire


def asked() -> tuple[Answer, ...]:
    return (
        dh.show_power(**JOB),
        dh.show_checkpoint(**JOB),
        dh.simulate_run(**JOB, days=20, runs=10),
        dh.plan_train(**JOB, tokens="100B"),
    )


def test_there_are_such_chips() -> None:
    assert "tpu-v7x" in CHIPS
    assert "h100-sxm" not in CHIPS


def test_all_that_copies_says_what_is_assumed() -> None:
    for answer in asked():
        assert [note for note in answer.notes if "nobody says how fast" in note and "12 GB/s" in note], (
            answer.kind
        )


def test_a_copy_draws_power_and_takes_time_at_that_rate() -> None:
    power, checkpoint, run, _ = asked()
    table = next(one for one in power.tables if "event" in [column.name for column in one.columns])
    copying, stopped = (
        dict(zip((column.name for column in table.columns), row, strict=True)) for row in table.rows
    )
    assert float(str(copying["to"])) > float(str(stopped["to"])), "a chip that copies reads its memory"
    chip_bytes = float(str(checkpoint.results["chip_bytes"]))
    assert checkpoint.results["host_blocking_s"] == pytest.approx(0.04 + chip_bytes / SLOWEST_BYTES_PER_S)
    assert run.results["remote_blocking_s"] == pytest.approx(5.0 + chip_bytes / SLOWEST_BYTES_PER_S)
