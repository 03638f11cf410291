"""Every row of a training plan's tables is one candidate: its time and its memory are those of the layout it names."""

from functools import cache, partial
from typing import Any

import msgspec
import pytest

from datahall.answer import Table
from datahall.answers.ask import ask, form_of
from datahall.answers.reply import answer_of
from datahall.catalog import Catalog
from datahall.cluster.cluster import Cluster
from datahall.planner.training.candidate import AMPLE_FREE, NUM_SIMULATED, TOLD_APART
from datahall.planner.training.choice import ranked
from datahall.planner.training.plan import TrainingPlan
from datahall.planner.training.question import plan_training
from datahall.scenario.read import read_names
from datahall.scenario.scenario import Scenario
from datahall.training.layout.columns import Space
from datahall.training.layout.layout import Layout
from datahall.training.layout.search import Search
from datahall.training.memory.peak import chip_memory_bytes, peak_memory
from datahall.training.setup import machine_of
from datahall.training.step.step import step_times

SHELF = Catalog(user=False)
# a network so slow that what is simulated fastest is not what the closed form ranks first; and experts
QUESTIONS: dict[str, dict[str, Any]] = {
    "slow": {"model": "llama-3.1-8b", "tokens": "1T", "chips": 64, "nic": "2 GB/s", "domain": 4, "global_batch": 256},
    "experts": {"model": "qwen3-30b-a3b", "tokens": "1T", "chips": 64, "chip": "h200"},
    "offload": {"model": "llama-3.1-8b", "tokens": "1T", "chips": 16, "offload": "optimizer"},
}  # fmt: skip
each = pytest.mark.parametrize("name", QUESTIONS)


def asked(name: str) -> Scenario:
    return read_names(form_of("plan train"), QUESTIONS[name], SHELF)  # type: ignore[arg-type]


@cache
def plan(name: str) -> TrainingPlan:
    return plan_training(asked(name))


def searched(found: TrainingPlan, cluster: Cluster) -> Search:
    """The ranking that a plan on other chips begins with."""
    search = found.search
    return ranked(
        found.job, lambda _: cluster, cluster.num_chips, search.framework, search.books, search.options
    )


def step_s(found: TrainingPlan, layout: Layout, cluster: Cluster) -> float:
    """The closed form of one layout, asked alone."""
    layout.check(found.job.model, cluster.num_chips, found.job.global_batch)
    return float(step_times(found.job, cluster, Space.of(layout), found.search.framework).step_s[0])


def memory_bytes(found: TrainingPlan, layout: Layout) -> float:
    memory = peak_memory(found.job, found.cluster.chip, Space.of(layout), found.search.books)
    return float(memory.total_bytes[0])


@each
def test_a_row_on_another_machine_is_one_layout_there(name: str) -> None:
    found = plan(name)
    system = found.cluster.system
    assert found.machines
    for one in found.machines:
        other = system.with_network(1.0 + one.network_fraction)
        other = msgspec.structs.replace(other, num_domain=one.num_domain or system.num_domain)
        there = msgspec.structs.replace(found.cluster, system=other)
        assert one.step_s == pytest.approx(step_s(found, one.layout, there), rel=1e-12)
        assert one.difference_fraction == pytest.approx(one.step_s / found.closed_step_s - 1.0, rel=1e-9)
        assert one.chosen == (one.layout == found.layout)
    for change in {(one.network_fraction, one.num_domain) for one in found.machines}:
        rows = [one for one in found.machines if (one.network_fraction, one.num_domain) == change]
        assert [one.chosen for one in rows] == [True, False][: len(rows)]
        assert [one.step_s for one in rows if one.fastest] == [min(one.step_s for one in rows)]


@each
def test_a_row_of_other_chips_is_the_simplest_of_those_that_a_search_there_cannot_tell_apart(
    name: str,
) -> None:
    """Of its first few: tensor parallelism inside a domain before one that leaves it, then more memory free."""
    found = plan(name)
    assert len(found.chips_front) > 2
    for one in found.chips_front:
        candidate = one.candidate
        there = searched(found, machine_of(asked(name))(candidate.num_chips))
        assert candidate.closed_step_s == pytest.approx(
            step_s(found, candidate.layout, there.cluster), rel=1e-12
        )
        assert candidate.memory_bytes == pytest.approx(memory_bytes(found, candidate.layout), rel=1e-12)
        assert one.duration_s == pytest.approx(found.num_steps * candidate.closed_step_s, rel=1e-12)
        if one.chosen:
            assert candidate.layout == found.layout
            continue
        first_s = float(there.step_s[there.order[0]])
        near = [
            (leaves, -min(free, AMPLE_FREE), step_s, layout)
            for layout, step_s, leaves, free in map(partial(row_of, there), there.best(NUM_SIMULATED))
            if step_s <= (1.0 + TOLD_APART) * first_s
        ]
        assert candidate.layout == min(near, key=lambda one: one[:3])[3]


def row_of(there: Search, place: int) -> tuple[Layout, float, bool, float]:
    """A layout of a ranking: its step, whether its tensor parallelism leaves a domain, its share of free memory."""
    layout = there.layout(place)
    memory = peak_memory(there.job, there.cluster.chip, Space.of(layout), there.books)
    free = float(memory.headroom_bytes[0]) / chip_memory_bytes(there.cluster.chip)
    return layout, float(there.step_s[there.order[place]]), layout.tp > max(1, there.cluster.num_domain), free


@each
def test_rows_of_time_against_memory_and_of_the_best_are_one_layout_each(name: str) -> None:
    found = plan(name)
    for one in (*found.memory_front, *found.candidates):
        assert one.closed_step_s == pytest.approx(step_s(found, one.layout, found.cluster), rel=1e-12)
        assert one.memory_bytes == pytest.approx(memory_bytes(found, one.layout), rel=1e-12)
        assert sum(one.closed_parts_s.values()) == pytest.approx(one.closed_step_s, rel=1e-12)
        if one.execution is not None:
            assert one.execution.layout == one.layout


@each
def test_tables_print_the_rows_of_the_plan(name: str) -> None:
    found, answer = plan(name), answer_of(ask("plan train", QUESTIONS[name], catalog=SHELF))
    tables: dict[str, Table] = {table.title: table for table in answer.tables}
    machines = [row[1:3] for row in tables["if the machine changes"].rows]
    assert machines == [(one.layout.words, one.step_s) for one in found.machines]
    chips = [(row[0], row[1], row[3]) for row in tables["chips against time"].rows]
    assert chips == [
        (one.candidate.num_chips, one.duration_s, one.candidate.layout.words) for one in found.chips_front
    ]
    memory = [row[:3] for row in tables["time against memory"].rows]
    assert memory == [(one.layout.words, one.closed_step_s, one.memory_bytes) for one in found.memory_front]


def test_some_other_layout_is_the_fastest_on_some_machine() -> None:
    """So that the rows above are not all of the chosen layout, and the chosen one not always ranked first."""
    assert any(not one.chosen for name in QUESTIONS for one in plan(name).machines)
