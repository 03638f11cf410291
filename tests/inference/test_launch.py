"""Steps whose kernels the host launches: what was measured, and what must hold."""

from __future__ import annotations

import csv
from itertools import pairwise
from pathlib import Path
from statistics import median

import msgspec
import pytest

from datahall.breakdown import false_nodes
from datahall.catalog import Catalog
from datahall.inference.engine.engine import engine_on
from datahall.inference.engine.replica import Replica
from datahall.inference.step.figure import step_breakdown
from datahall.inference.step.launch import LAUNCH_S
from datahall.inference.step.price import price_steps
from datahall.inference.step.table import decode_step_time

MEASURED = Path(__file__).parents[2] / "calibration" / "h200" / "launch_steps.csv"
HELD_UP = 1.5  # times its graph, from which on a step is the host's


def replica(shelf: Catalog, *, graphs: bool, model: str = "llama-3.1-8b") -> Replica:
    chip = shelf.chip("h200-sxm")
    engine = msgspec.structs.replace(engine_on("vllm", chip), graphs=graphs)
    return Replica(model=shelf.model(model), chip=chip, engine=engine)


def test_the_time_of_a_launch_is_that_of_the_steps_that_the_host_held_up() -> None:
    with MEASURED.open() as file:
        rows = list(csv.DictReader(file))
    held = [one for one in rows if float(one["host_step_s"]) > HELD_UP * float(one["graph_step_s"])]
    assert len(held) == 18
    each_s = median(float(one["host_step_s"]) / float(one["num_kernels"]) for one in held)
    assert each_s == pytest.approx(LAUNCH_S, rel=0.005)


def test_graphs_help_small_batches_and_never_hurt(shelf: Catalog) -> None:
    graphs, host = (price_steps(replica(shelf, graphs=how)).table for how in (True, False))
    ratios = [
        decode_step_time(host, num, 1024.0) / decode_step_time(graphs, num, 1024.0)
        for num in (1, 8, 32, 128, 512)
    ]
    assert all(later <= sooner + 1e-9 for sooner, later in pairwise(ratios))
    assert ratios[0] > 1.2
    assert ratios[-1] == pytest.approx(1.0, abs=0.01)


def test_no_part_of_a_step_is_shorter_than_its_launches(shelf: Catalog) -> None:
    """The head of a small model is one kernel, which a graph starts sooner."""
    graphs, host = (
        price_steps(replica(shelf, graphs=how, model="smollm2-135m")).table for how in (True, False)
    )
    assert graphs.head_s[1] < LAUNCH_S
    assert host.head_s[1] == pytest.approx(LAUNCH_S)
    assert host.prefill_s.min() >= 30 * LAUNCH_S  # its layers


def test_a_smaller_model_waits_longer_for_the_host(shelf: Catalog) -> None:
    def slower(model: str) -> float:
        one, other = (price_steps(replica(shelf, graphs=how, model=model)).table for how in (False, True))
        return decode_step_time(one, 1, 1024.0) / decode_step_time(other, 1, 1024.0)

    assert slower("llama-3.2-1b") > slower("llama-3.1-8b") > 1.0


@pytest.mark.parametrize("num_decodes", [1, 512])
def test_the_opened_step_has_what_the_table_has(shelf: Catalog, num_decodes: int) -> None:
    one = replica(shelf, graphs=False)
    figure = step_breakdown(one, num_decodes=num_decodes, mean_context=1024.0)
    table = price_steps(one).table
    assert figure.value == pytest.approx(decode_step_time(table, num_decodes, 1024.0), rel=0.03)
    assert false_nodes(figure) == []
    waits = [node for _, node in figure.walk() if node.name == "waiting for launches"]
    assert bool(waits) == (num_decodes == 1)
