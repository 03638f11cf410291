"""Servers at the wall in MLPerf Inference: idle before the run, and serving a language model at their greatest rate."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from datahall.catalog import load
from datahall.catalog.entries.chip import Chip
from datahall.inference.closed_form.steady_state import Load, most_sequences
from datahall.inference.engine.engine import engine
from datahall.inference.engine.replica import Replica
from datahall.inference.memory.kv_capacity import kv_capacity
from datahall.power.chip import chip_power_w, idle_power_w
from datahall.power.constants import band_of, basis_of
from datahall.power.server import server_power_w
from datahall.power.serving import mean_work
from datahall.validation.inference.names import chip_of
from datahall.validation.measurement import Row, RowError
from datahall.validation.scorecard import Prediction, Unsupported
from datahall.workload.precision import Precision

SERVER_POWER, IDLE_POWER = "server power", "idle server power"


class Task(NamedTuple):
    """A language model of MLPerf Inference: mean tokens of its requests, and chips of a replica in submissions."""

    model: str
    prompt: float
    output: float
    tp: int


# Mean lengths of the benchmark's data sets (OpenOrca, CNN/DailyMail, LongBench and others for 405B), rounded.
TASKS = {
    "llama2-70b": Task("llama-2-70b", 295.0, 295.0, 1),
    "llama3.1-8b": Task("llama-3.1-8b", 780.0, 75.0, 1),
    "llama3.1-405b": Task("llama-3.1-405b", 9400.0, 685.0, 4),
}


def predict_wall(row: Row) -> Iterator[Prediction | Unsupported]:
    """The idle power of a server, and its power under the load that a row states."""
    chip, num = chip_of(row.text("accelerator")), int(row.count("n_accelerators"))
    if row.text("min_w"):
        idle_w = server_power_w(chip, idle_power_w(chip), num)
        yield _prediction(row, chip, IDLE_POWER, row.positive("min_w"), idle_w)
    if reason := _unknown(row):
        yield Unsupported(reason, row.where)
        return
    drawn_w = server_power_w(chip, chip_w(row, chip), num)
    yield _prediction(row, chip, SERVER_POWER, row.positive("power_w_total"), drawn_w)


def _unknown(row: Row) -> str:
    if "MaxQ" in row.text("system") + row.text("note"):
        return "chips are held below their limit (MaxQ), at what is not stated"
    return "" if _task(row) is not None else "the benchmark is no language model"


def _task(row: Row) -> Task | None:
    found = re.search(r"([\w.]+-\d+b)", row.text("workload").lower())
    return TASKS.get(found[1]) if found else None


def chip_w(row: Row, chip: Chip) -> float:
    """Power of a chip of a server that serves as much as it holds [W]."""
    task = _task(row)
    if task is None:
        raise RowError("the benchmark is no language model")
    formats = next((one for one in ("nvfp4", "fp8", "bf16") if chip.multiplies(one)), "bf16")
    model = load().model(task.model)
    replica = Replica(
        model=model,
        chip=chip,
        engine=engine("trtllm"),
        precision=Precision.named(formats),
        tp=task.tp,
        max_context=int(2 * (task.prompt + task.output)),
    )
    asked = Load(prompt=task.prompt, output=task.output)
    held, _ = most_sequences(replica, asked, kv_capacity(replica))
    return chip_power_w(chip, mean_work(replica, asked, held).activity)


def _prediction(row: Row, chip: Chip, metric: str, measured: float, predicted: float) -> Prediction:
    low, high = band_of("server", chip)
    return Prediction(
        source=row.text("source"),
        hardware=chip.name,
        model=row.text("workload").rpartition(" ")[2],
        label=f"{row.text('system')}, {row.text('phase')}",
        where=row.where,
        measured=measured,
        predicted=predicted,
        low=predicted * low,
        high=predicted * high,
        unit="w",
        metric=metric,
        basis=basis_of(chip),
    )
