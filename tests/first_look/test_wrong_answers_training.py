"""Training: more chips are never slower, batches are as asked, what is narrow is felt, what is uneven is explained."""

from __future__ import annotations

import re
import shlex
from functools import cache
from itertools import pairwise
from typing import Any

import msgspec
import pytest
from tests.first_look.conftest import Run
from tests.first_look.figures import table, words_of
from tests.results import number

import datahall as dh
from datahall.answer import Answer
from datahall.catalog import Catalog
from datahall.training.pipeline import execution
from datahall.training.step import step as closed_form
from datahall.training.step.step import StepTimes


@cache
def plan(shelf: Catalog, model: str = "llama-3.1-8b", **asked: Any) -> Answer:
    found = dh.plan_train(model, **{"tokens": "1T", "chip": "h100-sxm", **asked}, catalog=shelf)
    assert isinstance(found, Answer)
    return found


def step(shelf: Catalog, model: str = "llama-3.1-8b", **asked: Any) -> Answer:
    found = dh.simulate_train(model, **{"chip": "h100-sxm", **asked}, catalog=shelf)
    assert isinstance(found, Answer)
    return found


THOUSAND = "plan train llama-3.1-70b --tokens 15T --chips 1000 --chip h100-sxm"


def test_a_number_that_nothing_divides_is_planned_with_some_chips_idle(datahall: Run) -> None:
    """70B on 1,000 chips: 960 of them train it."""
    assert datahall(*shlex.split(THOUSAND)).code == 0


def test_more_chips_are_never_slower(shelf: Catalog) -> None:
    """62 chips hold 32, which divide better."""
    times = [number(plan(shelf, chips=chips, global_batch=64), "duration_s") for chips in (32, 62)]
    assert times == sorted(times, reverse=True)


def test_16000_chips_are_no_slower_than_8192(shelf: Catalog) -> None:
    """405B: pp 125 because 16,000 divides by nothing better."""
    few, many = (
        number(plan(shelf, "llama-3.1-405b", tokens="15T", chips=chips), "duration_s")
        for chips in (8192, 16000)
    )
    assert many <= few


def test_what_a_refusal_names_as_nearest_plans(datahall: Run) -> None:
    done = datahall(*shlex.split(THOUSAND))
    assert done.code == 0 or "--chips" in done.err
    for chips in re.findall(r"--chips (\d+)", done.err)[:1]:
        line = f"plan train llama-3.1-70b --tokens 15T --chips {chips} --chip h100-sxm --quiet"
        assert datahall(*line.split()).code == 0


def test_a_plan_leaves_more_memory_free_than_its_error(shelf: Catalog) -> None:
    """147 MB of 85.5 GB are less than what no estimate of memory can promise."""
    found = plan(shelf, "llama-3.1-405b", tokens="15T", chips=8192)
    seen = number(found, "memory_bytes") + number(found, "headroom_bytes")
    assert number(found, "headroom_bytes") > 0.02 * seen


def test_a_tie_goes_to_tensor_parallelism_inside_a_server(shelf: Catalog) -> None:
    """405B on 16,384: where another layout is as fast as the band can tell, the chosen one stays inside a server."""
    found = plan(shelf, "llama-3.1-405b", tokens="15T", chips=16384)
    rows = [row for row in table(found, "best layouts").records() if row["duration_s"] is not None]
    tied = [row for row in rows if row["duration_s"] <= number(found, "duration_high_s")]  # type: ignore[operator]
    inside = [row for row in tied if re.search(r"\btp [1248]\b", str(row["layout"]))]
    assert inside
    assert number(found, "tp") <= 8


def test_a_batch_below_what_ranks_take_is_refused(datahall: Run) -> None:
    line = "simulate train llama-3.1-8b --chips 64 --tp 8 --global-batch 4 --micro-batch 2"
    done = datahall(*line.split())
    assert done.code == 2
    assert "--global-batch" in done.err


@pytest.mark.parametrize("batch", [4, 512])
def test_a_plan_trains_with_the_batch_that_was_asked(batch: int, shelf: Catalog) -> None:
    found = plan(shelf, chips=64, global_batch=batch)
    assert number(found, "dp") * number(found, "micro_batch") <= batch
    tokens = batch * 8192 * number(found, "num_steps")
    assert tokens == pytest.approx(1e12, rel=1e-3)
    assert number(found, "tokens_per_s") * number(found, "step_s") == pytest.approx(batch * 8192)


def test_a_longer_deadline_needs_no_more_chips_and_is_kept(shelf: Catalog) -> None:
    plans = {days: plan(shelf, tokens="100B", deadline=f"{days} days") for days in (4, 12)}
    assert number(plans[12], "num_chips") <= number(plans[4], "num_chips")
    for days, found in plans.items():
        assert number(found, "duration_s") <= days * 86_400


def test_the_step_of_a_plan_is_the_step_of_its_next_command(shelf: Catalog, datahall: Run) -> None:
    found = plan(shelf, chips=64)
    (line,) = [line for line in found.next_commands if " simulate train " in line]
    done = datahall(*shlex.split(line)[1:], "--json")
    assert done.code == 0
    assert f'"step_s": {number(found, "step_s")!r}'[:20] in done.out


WEAK = (4096, 8192, 12288, 16384)


def exchanged(shelf: Catalog, chips: int) -> Answer:
    return step(shelf, chips=chips, tp=8, global_batch=chips // 8)


def test_weak_scaling_gets_no_faster_or_says_why(shelf: Catalog) -> None:
    """8B at TP 8: where more ranks take less time, NCCL chose another algorithm, and the answer names it."""
    for few, many in pairwise(exchanged(shelf, chips) for chips in WEAK):
        names = [
            re.findall(r"with (.*) and parameters gathered with (.*?),", words_of(one)) for one in (few, many)
        ]
        assert all(names)
        assert number(many, "step_s") >= number(few, "step_s") or names[0] != names[1]


def test_the_cross_check_of_a_step_can_differ(shelf: Catalog) -> None:
    """A pipeline simulated with what its stages take, against a closed form that knows bubbles by a formula."""
    found = step(shelf, "llama-3.1-70b", chips=512, tp=8, pp=8, global_batch=512)
    assert number(found, "difference_fraction") != 0
    assert abs(number(found, "difference_fraction")) < 0.1


OF_THE_STEP = (
    "slot_s",
    "compute_s",
    "pipeline_s",
    "data_s",
    "optimizer_s",
    "offload_s",
    "gathered_s",
    "fixed_s",
)


@pytest.mark.parametrize("wrong", OF_THE_STEP)
@pytest.mark.parametrize("zero", [1, 3])
def test_a_wrong_closed_form_moves_no_simulated_step(
    shelf: Catalog, monkeypatch: pytest.MonkeyPatch, wrong: str, zero: int
) -> None:
    """The simulation has operators and collectives of its own: what the closed form makes of them is not its input."""
    asked = {"chips": 256, "tp": 8, "pp": 4, "global_batch": 256, "zero": zero}
    right = step(shelf, "llama-3.1-70b", **asked)
    plain = execution.step_times

    def mistaken(*given: Any) -> StepTimes:
        found = plain(*given)
        much = getattr(found, wrong) * 0.5 + 5.0
        return msgspec.structs.replace(
            found, **{wrong: getattr(found, wrong) + much}, step_s=found.step_s + 0.5 * found.step_s
        )

    monkeypatch.setattr(execution, "step_times", mistaken)
    other = step(shelf, "llama-3.1-70b", **asked)
    assert number(other, "step_s") == number(right, "step_s")
    assert abs(number(other, "difference_fraction")) > 0.3


@pytest.mark.parametrize("zero", [1, 3])
def test_kernels_of_a_space_are_not_those_that_are_simulated(
    shelf: Catalog, monkeypatch: pytest.MonkeyPatch, zero: int
) -> None:
    asked = {"chips": 256, "tp": 8, "pp": 4, "global_batch": 256, "zero": zero}
    right = number(step(shelf, "llama-3.1-70b", **asked), "step_s")
    plain = closed_form.kernel_times
    monkeypatch.setattr(
        closed_form, "kernel_times", lambda *given: tuple(2.0 * each for each in plain(*given))
    )
    found = step(shelf, "llama-3.1-70b", **asked)
    assert number(found, "step_s") == right
    assert abs(number(found, "difference_fraction")) > 0.3


def test_a_narrow_network_slows_a_step(shelf: Catalog) -> None:
    """A tree has one cable out of each leaf; a fat tree as many as go in."""
    asked = {"chips": 512, "tp": 8, "global_batch": 256}
    wide, narrow = (number(step(shelf, **asked, on=on), "step_s") for on in ("fat-tree", "tree"))
    assert narrow > wide


def test_the_example_of_the_readme_fits(datahall: Run) -> None:
    line = "simulate train llama-3.1-405b --chips 16384 --chip h100-sxm --tp 8 --pp 16 --zero 2 --global-batch 2048"
    done = datahall(*line.split())
    assert done.code == 0
    assert "not fit" not in done.out
