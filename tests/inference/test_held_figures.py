"""What a chip holds, opened: by one replica, by pools of prompts and answers, and where a curve ends."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import numpy as np
import pytest
from tests.inference.closed_form_case import flat, limits
from tests.inference.test_capacity import rising
from tests.inference.test_ladder import DRAFT, LOAD, SLO

from datahall.breakdown import false_nodes
from datahall.catalog import Catalog
from datahall.errors import InfeasibleError
from datahall.inference.closed_form.capacity import Held
from datahall.inference.closed_form.held_figure import rank_figure
from datahall.inference.deploy import pools_of
from datahall.inference.engine.engine import engine_on
from datahall.inference.engine.replica import Replica
from datahall.inference.ladder.climb import gain_figure, ladder
from datahall.inference.ladder.techniques import Setting, disaggregated, effect
from datahall.scenario.sections.deployment import Deployment

OnCurve = Callable[..., Held]


@pytest.fixture(scope="module")
def plain(shelf: Catalog) -> Replica:
    chip = shelf.chip("h100-sxm")
    return Replica(model=shelf.model("llama-3.1-8b"), chip=chip, engine=engine_on("vllm", chip))


def test_pools_apart_open_to_the_chip_time_of_a_request(plain: Replica) -> None:
    """A request takes chips / rate of the pool that computes its prompt, and of the one that answers."""
    setting = disaggregated(Setting(replica=plain, load=LOAD))
    apart = effect("apart", setting, SLO, 2.0)
    found = ladder(plain, LOAD, SLO, 2.0, cached=0.0, speculation=DRAFT)
    steps = msgspec.structs.replace(found, together=(apart,))
    figure = gain_figure(steps)
    assert false_nodes(figure) == []
    reached = figure.parts[0]
    assert reached.value == pytest.approx(apart.held_per_s)
    prompts, answers = reached.at("chip time of a request").parts
    assert apart.prompts is not None
    assert apart.held is not None
    assert prompts.value == pytest.approx(1 / apart.prompts.rate_per_s)
    assert answers.value == pytest.approx(1 / apart.held.rate_per_s)
    assert figure.value == pytest.approx(apart.held_per_s / found.reference.held_per_s)


def test_a_curve_is_told_by_chip_as_far_as_its_steps_are_short_enough(on_curve: OnCurve) -> None:
    """Two ranks, which have half of the replica's chips each."""
    most = on_curve(rising(tpot_high_s=1.0), limits(tpot_s=100.0), 2)
    points = most.chip_curve(2.0)
    chips = most.replica.num_chips / 2
    assert max(time_s for _, time_s in points) <= 2.0
    assert len(points) == int((most.curve.tpot_high_s <= 2.0).sum())
    assert [rate * chips for rate, _ in points] == pytest.approx(
        most.curve.rate_per_s[: len(points)].tolist()
    )
    assert most.cache_tokens == 2 * most.capacity.held_tokens(21)


def test_a_load_that_ends_at_a_limit_says_what_is_beyond_it(on_curve: OnCurve) -> None:
    at_limit = rank_figure(on_curve(rising(tpot_high_s=1.0), limits(tpot_s=2.0)))
    assert false_nodes(at_limit) == []
    assert any("beyond" in part.name for part in at_limit.parts)
    first = rank_figure(on_curve(rising(ttft_high_s=0.5, ttft_s=0.0), limits(ttft_s=0.6)))
    assert any(part.name.startswith("TTFT at") for part in first.parts)
    full = rank_figure(on_curve(flat(), limits()))
    assert "sequences ends it" in full.formula + full.note
    wide = msgspec.structs.replace(flat(), within=np.ones(40, bool))
    endless = rank_figure(on_curve(wide, limits()))
    assert "faster than they are answered" in endless.formula + endless.note


def test_limits_that_no_load_keeps_are_refused(on_curve: OnCurve) -> None:
    """One request alone has a TPOT of 1 s, and 2 s at the percentile from the first load on."""
    with pytest.raises(InfeasibleError, match="no load does"):
        on_curve(flat(), limits(tpot_s=1.5))


def test_pools_apart_have_chips_of_their_own(shelf: Catalog) -> None:
    model = shelf.model("llama-3.1-8b")
    prompts, answers = pools_of(
        Deployment(chip="h100-sxm", disaggregated="prefill=2xh200-sxm,decode=3"), model, shelf, None, ()
    )
    assert (prompts.role, prompts.count, prompts.replica.chip.name) == ("prefill", 2, "h200-sxm")
    assert (answers.role, answers.count, answers.replica.chip.name) == ("decode", 3, "h100-sxm")
