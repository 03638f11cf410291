"""Plans of training runs: the best layout, the fewest chips, and a clear no."""

import re
from functools import partial
from math import nan
from typing import Any, cast

import msgspec
import pytest

import datahall as dh
from datahall.answers.ask import form_of
from datahall.catalog import Catalog
from datahall.catalog.entries.chip import Chip
from datahall.cluster.cluster import cluster_of
from datahall.errors import (
    DatahallError,
    DocumentError,
    InfeasibleError,
    ScenarioError,
    UnknownNameError,
    UnsupportedError,
    spelled,
)
from datahall.planner.training.candidate import TOLD_APART
from datahall.planner.training.choice import plan_on_chips
from datahall.planner.training.nearest import nearest_chips
from datahall.planner.training.plan import TrainingPlan
from datahall.planner.training.question import plan_training
from datahall.scenario.read import read_names
from datahall.training.layout.search import search
from datahall.training.layout.space import Options, layout_space
from datahall.training.pipeline.execution import simulate_step
from datahall.training.setup import Machine
from datahall.training.step.framework import framework
from datahall.training.step.step import Job
from datahall.units import DAY_S, fmt

SHELF = Catalog(user=False)
H100 = SHELF.chip("h100-sxm")
KIT = framework("nemo")


def of(chip: Chip) -> Machine:
    return partial(cluster_of, chip, servers=SHELF.servers())


MACHINE = of(H100)
JOB = Job(model=SHELF.model("llama-3.1-8b"), seq=8192, global_batch=512)


def test_a_plan_on_chips() -> None:
    plan = plan_on_chips(JOB, MACHINE, 128, 1e12, KIT)
    plan.layout.check(JOB.model, 128, 512)
    assert plan.duration_s == pytest.approx(plan.num_steps * plan.step_s)
    assert plan.num_steps == -(-int(1e12) // (512 * 8192))
    assert plan.execution.tokens_per_s * plan.step_s == pytest.approx(512 * 8192)
    assert 0.2 < plan.execution.mfu_fraction < 0.8
    assert plan.chosen.headroom_bytes >= 0


def test_the_best_few_are_simulated_and_the_fastest_of_them_is_chosen() -> None:
    plan = plan_on_chips(JOB, MACHINE, 128, 1e12, KIT)
    tried = [plan.chosen, *(one.candidate for one in plan.alternatives)]
    simulated = [one for one in tried if one.execution is not None]
    assert len(simulated) == 3
    assert plan.chosen in simulated
    assert plan.step_s == min(one.step_s for one in simulated)
    assert plan.chosen.execution is not None
    assert plan.chosen.execution.layout == plan.layout
    for one in simulated:  # the ranking and the simulation are of one layout, and of one closed form
        assert one.execution is not None
        assert one.execution.step_s == simulate_step(JOB, MACHINE(128), one.layout, KIT).step_s
        assert one.execution.closed_parts.step_s == pytest.approx(one.closed_step_s, rel=1e-12)
    assert plan_on_chips(JOB, MACHINE, 128, 1e12, KIT, num_simulated=1).chosen.place == 0


def test_a_plan_names_its_objective_and_why_the_others_lost() -> None:
    plan = plan_on_chips(JOB, MACHINE, 128, 1e12, KIT)
    assert (plan.objective.name, plan.objective.unit) == ("time", "s")
    assert plan.alternatives
    for one in plan.alternatives:  # each beside the chosen one, as simulated or in closed form
        lost, chosen = one.candidate, plan.chosen
        both = lost.execution is not None
        assert one.loss.layout == lost.layout
        assert 1 + one.loss.slower_fraction == pytest.approx(
            lost.step_s / (chosen.step_s if both else chosen.closed_step_s)
        )
    assert all(one.candidate.step_s >= plan.step_s for one in plan.alternatives if one.candidate.execution)
    assert 0 < plan.search.num_fitting < len(plan.search.space)
    cuts = [(one.layout.tp, one.layout.pp, one.layout.cp, one.layout.ep) for one in
            (plan.chosen, *(one.candidate for one in plan.alternatives))]  # fmt: skip
    assert len(set(cuts)) == len(cuts)


def test_what_it_hangs_on_is_searched_before_it_is_worded() -> None:
    plan = plan_on_chips(JOB, MACHINE, 128, 1e12, KIT)
    assert {change.name for change in plan.changes} >= {"tp", "zero", "recompute"}
    assert {one.network_fraction for one in plan.machines} >= {-0.2, 0.2}
    times = [one.closed_step_s for one in plan.memory_front]
    taken = [one.memory_bytes for one in plan.memory_front]
    assert times == sorted(times)
    assert taken == sorted(taken, reverse=True)


def test_more_chips_take_less_time_on_the_same_batch() -> None:
    front = plan_on_chips(JOB, MACHINE, 128, 1e12, KIT).chips_front
    assert [one.candidate.num_chips for one in front] == [32, 64, 128, 256]
    times = [one.duration_s for one in front]
    assert times == sorted(times, reverse=True)
    assert [one.chosen for one in front] == [False, False, True, False]
    assert not any(one.beaten for one in front)


def test_other_numbers_of_chips_are_of_the_same_machine() -> None:
    """A slow network is slow for the smaller and larger clusters too, and for the chips that would hold the model."""
    slow = partial(cluster_of, H100, nic_bytes_per_s=1e9, num_domain=4)
    front = plan_on_chips(JOB, slow, 128, 1e12, KIT).chips_front
    for one in front:
        there = search(JOB, slow(one.candidate.num_chips), KIT)
        assert one.candidate.closed_step_s <= float(there.step_s[there.order[0]]) * (1 + TOLD_APART)
        usual = search(JOB, MACHINE(one.candidate.num_chips), KIT)
        assert one.candidate.closed_step_s > float(usual.step_s[usual.order[0]])


def test_what_a_search_may_offload_is_asked_for() -> None:
    job = Job(model=SHELF.model("llama-3.1-405b"), seq=8192, global_batch=512)
    options = Options(offload=((), ("optimizer",), ("optimizer", "activations")))
    plan = plan_on_chips(job, MACHINE, 64, 1e12, KIT, options=options)
    assert "optimizer" in plan.layout.offload
    assert plan.chosen.headroom_bytes >= 0
    assert plan.chosen.execution is not None
    assert plan.chosen.execution.parts.offload_s > 0


def by(deadline: str, tokens: str = "1T", **more: Any) -> TrainingPlan:
    asked = {"model": "llama-3.1-8b", "global_batch": 512, "tokens": tokens, "deadline": deadline, **more}
    return plan_training(read_names(form_of("plan train"), asked, SHELF, bare=True))


def test_a_deadline_takes_the_fewest_chips() -> None:
    plan = by("20d", objective="chips")
    assert plan.objective.name == "chips"
    assert plan.done_s is not None
    assert plan.duration_s < plan.elapsed_s < plan.done_s <= 20 * DAY_S
    in_time = [other.candidate for other in plan.weighed if other.in_time]
    assert in_time[0] is plan.chosen
    assert plan.num_chips % 8 == 0
    counts = [other.candidate.num_chips for other in plan.weighed]
    assert counts == sorted(counts)


def test_a_longer_deadline_needs_no_more_chips() -> None:
    chips = [by(f"{days}d").num_chips for days in (5, 10, 20, 60)]
    assert chips == sorted(chips, reverse=True)


def test_what_fits_nowhere_names_the_constraint_and_the_way_out() -> None:
    job = Job(model=SHELF.model("llama-3.1-405b"), seq=8192, global_batch=512)
    with pytest.raises(InfeasibleError) as caught:
        plan_on_chips(job, MACHINE, 64, 1e12, KIT)
    assert "fits 64 × h100-sxm in none of" in caught.value.message
    assert "lacks" in caught.value.message
    assert "memory: stage" in caught.value.where
    hint = spelled(caught.value.hint)
    assert 'cheapest change: offload="optimizer' in hint
    assert "or chips=128" in hint
    linkless = msgspec.structs.replace(H100, host_bytes_per_s=nan)
    with pytest.raises(InfeasibleError) as caught:
        plan_on_chips(job, of(linkless), 64, 1e12, KIT)
    assert "cheapest change: chips=128" in spelled(caught.value.hint)
    assert plan_on_chips(job, MACHINE, 128, 1e12, KIT).chosen.headroom_bytes >= 0


def test_a_deadline_nobody_can_meet() -> None:
    with pytest.raises(InfeasibleError) as caught:
        by("1h", "15T")
    assert "no number of chips" in caught.value.message
    assert caught.value.field == "deadline"


def test_a_change_is_tried_before_it_is_offered() -> None:
    """A batch of eight feeds few chips, one of 32 enough; no batch mends an hour for 15T tokens."""
    with pytest.raises(InfeasibleError) as caught:
        by("4d", global_batch=8)
    hint = spelled(caught.value.hint)
    batch, days = (int(re.search(rf"{name}\D*(\d+)", hint)[1]) for name in ("global_batch", "deadline"))  # type: ignore[index]
    assert batch > 8
    assert by("4d", global_batch=batch).in_time
    assert by(f"{days}d", global_batch=8).in_time
    with pytest.raises(InfeasibleError) as caught:
        by("1h", "15T")
    assert "global_batch" not in spelled(caught.value.hint)


def test_a_deadline_that_no_million_chips_would_meet_at_their_peak() -> None:
    with pytest.raises(InfeasibleError, match="at their peak"):
        by("1s", "15T")


@pytest.mark.parametrize("num_chips", [1000, 2047, 37])
def test_the_nearest_chips_that_divide_do(num_chips: int) -> None:
    near = nearest_chips(JOB, num_chips)
    assert 0 < near.below < num_chips < near.above
    for count in near:
        assert len(layout_space(JOB, count))
    assert not any(len(layout_space(JOB, count)) for count in range(near.below + 1, near.above))


def test_the_answer_holds_the_decision_its_margin_and_its_rivals() -> None:
    answer = dh.plan_train("llama-3.1-70b", tokens="15T", chips=2048, chip="h200", catalog=SHELF)
    assert "15T tokens through Llama 3.1 70B on 2,048 × h200-sxm" in answer.headline
    assert "MFU" in answer.headline
    assert "free" in answer.headline
    best = answer.tables[0]
    assert len(best.columns) <= 7
    assert best.marked == 0
    assert all(row[-1] for row in best.rows[1:])
    assert answer.figure is not None
    assert answer.figure.band is not None
    assert answer.figure.value == pytest.approx(answer.results["elapsed_s"])
    assert answer.figure.at("time of the steps").value == pytest.approx(answer.results["duration_s"])
    assert answer.results["num_fitting"] <= answer.results["num_layouts"]
    assert answer.next_commands[0].startswith("datahall show memory llama-3.1-70b --chips 2048")


@pytest.mark.parametrize(
    ("options", "kind", "field", "said"),
    [
        ({"chips": 8, "deadline": "30d"}, ScenarioError, "chips", "either how many chips"),
        ({}, ScenarioError, "chips", "either how many chips"),
        ({"chips": "many"}, ScenarioError, "chips", "many"),
        ({"chips": 0}, ScenarioError, "chips", "at least 1"),
        ({"chips": 8, "tokens": "0"}, ScenarioError, "tokens", "at least 1"),
        ({"chips": 8, "tokens": "lots"}, ScenarioError, "tokens", "lots"),
        ({"deadline": "-3d"}, ScenarioError, "deadline", "above 0"),
        ({"chips": 8, "framework": "nemmo"}, UnknownNameError, "framework", "nemo"),
        ({"chips": 8, "state": "fp9"}, UnknownNameError, "state", "state recipe"),
        ({"chips": 8, "precision": "bf17"}, UnknownNameError, "precision", "bf16"),
        ({"chips": 8, "chip": "a100-sxm-80gb", "precision": "fp8"}, UnsupportedError, "precision", "no FP8"),
        ({"chips": 3, "global_batch": 2**30}, ScenarioError, "global_batch", "more than"),
        ({"chips": 8, "imbalance": 0.5}, ScenarioError, "imbalance", "at least 1"),
    ],
)
def test_bad_questions(options: dict[str, object], kind: type[Exception], field: str, said: str) -> None:
    asked: dict[str, object] = {"tokens": "1T"} | options
    with pytest.raises(kind, match=said) as caught:
        dh.plan_train("llama-3.1-8b", **asked, catalog=SHELF)
    assert not isinstance(caught.value, DocumentError)
    assert caught.value.field == field  # type: ignore[attr-defined]


def test_a_tree_costs_what_its_narrow_root_makes_of_the_exchange() -> None:
    """Seed 000: a tree whose links do not widen towards the root is a bottleneck of all that is not local."""
    asked = {
        "model": "llama-3.1-8b",
        "tokens": 1e12,
        "chips": 256,
        "chip": "h200",
        "global_batch": 256,
        "seq": 2048,
    }
    tree, fat = (dh.plan_train(on=name, **asked, catalog=SHELF) for name in ("tree", "fat-tree"))  # type: ignore[arg-type]
    alone = dh.plan_train(**asked, catalog=SHELF)  # type: ignore[arg-type]
    slow, fast = (cast(float, one.results["duration_s"]) for one in (tree, fat))
    assert slow > 1.2 * fast
    assert tree.results["full_bisection_duration_s"] == pytest.approx(alone.results["duration_s"])
    share = slow / cast(float, tree.results["full_bisection_duration_s"]) - 1.0
    assert f"here {fmt(share, 'fraction')} longer" in tree.binding
    assert fmt(cast(float, tree.results["full_bisection_duration_s"]), "s", 3) in tree.binding
    assert "full bisection" not in fat.binding + alone.binding
    assert "full_bisection_duration_s" not in fat.results


def test_what_follows_a_plan_on_a_tree_stands_on_the_same_tree() -> None:
    """The step of the chosen layout is the plan's, and its parts on the fabric are the closed form's."""
    tree = dh.plan_train("llama-3.1-8b", tokens=1e12, chips=256, chip="h200", on="tree", catalog=SHELF)
    command = next(one for one in tree.next_commands if "simulate train" in one)
    assert "--on tree" in command
    layout = {name: tree.results[name] for name in ("tp", "pp", "vpp", "cp", "zero", "micro_batch", "shard")}
    said = {name: value for name, value in layout.items() if value not in (0, None)}
    run = dh.simulate_train(
        "llama-3.1-8b",
        chips=256,
        chip="h200",
        on="tree",
        recompute=tree.results["recompute"],
        catalog=SHELF,
        **said,
    )  # type: ignore[arg-type]
    assert run.results["step_s"] == pytest.approx(tree.results["step_s"])
    assert run.results["closed_form_s"] == pytest.approx(tree.results["closed_step_s"])


def test_a_batch_of_too_many_micro_batches_is_refused_with_the_largest_that_is_not() -> None:
    """Each chip takes 100,000 micro-batches of up to 16 sequences."""
    for chips in (1, 2):
        with pytest.raises(ScenarioError, match="is more than 100,000 micro-batches") as refused:
            dh.plan_train("llama-3.1-8b", chips=chips, tokens=1e12, global_batch=100_000_000)
        assert refused.value.hint.endswith(f"={chips * 100_000 * 16}")
        with pytest.raises(DatahallError) as less:
            dh.plan_train("llama-3.1-8b", chips=chips, tokens=1e12, global_batch=chips * 100_000 * 16)
        assert "micro-batches on each" not in str(less.value)
