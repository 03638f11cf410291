"""The mean request of the closed form is that of the requests as a context cuts them."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import datahall as dh
from datahall.errors import ScenarioError
from datahall.inference.closed_form.load import load_of
from datahall.workload.traffic.arrivals import Arrivals
from datahall.workload.traffic.conversation import Conversation
from datahall.workload.traffic.shapes import Fixed, Lengths, Lognormal, Uniform
from datahall.workload.traffic.traffic import Traffic, describe


def traffic(prompt: Lengths, output: Lengths, max_context: int = 0, **talk: float) -> Traffic:
    return Traffic(
        prompt=prompt, output=output, arrivals=Arrivals(rate_per_s=1.0), num_requests=60_000,
        max_context=max_context, conversation=Conversation(**talk),  # type: ignore[arg-type]
    )  # fmt: skip


def test_an_answer_ends_where_the_context_is_full() -> None:
    load = load_of(traffic(Fixed(8000), Fixed(1000), 8192))
    assert (load.prompt, load.output, load.spread, load.output_spread) == (8000, 192, 0, 0)
    load = load_of(traffic(Fixed(6000), Fixed(1000), 8192, system_tokens=2000))
    assert (load.prompt, load.output) == (8000, 192)


def test_a_prompt_leaves_room_for_one_token() -> None:
    """Half of the prompts are cut to 99, which leave one token; of the others the answers of 2 fit, but for 99."""
    load = load_of(traffic(Uniform(1, 199), Fixed(2), 100))
    assert load.prompt == pytest.approx((50 + 99) / 2, rel=0.01)
    assert load.output == pytest.approx(1.5, rel=0.01)


@settings(max_examples=40, deadline=None)
@given(
    st.integers(20, 4000), st.integers(1, 2000), st.floats(0.0, 1.2), st.integers(300, 9000), st.integers(0, 250)
)  # fmt: skip
def test_means_are_those_of_requests_that_are_drawn(
    prompt: int, output: int, spread: float, context: int, system: int
) -> None:
    whole = traffic(Lognormal(prompt, spread), Lognormal(output, spread), system_tokens=system)
    try:
        cut = msgspec.structs.replace(whole, max_context=context)
    except ScenarioError:
        return
    found, drawn = load_of(cut), describe(cut)
    assert found.prompt == pytest.approx(drawn.mean_prompt_tokens, rel=0.03, abs=1.0)
    assert found.output == pytest.approx(drawn.mean_output_tokens, rel=0.03, abs=1.0)
    assert found.prompt + found.output <= 1.02 * context


def test_a_context_that_cuts_nothing_changes_nothing() -> None:
    lengths = Lognormal(500, 0.5), Lognormal(200, 0.5)
    assert load_of(traffic(*lengths, 1_000_000)) == load_of(traffic(*lengths))


@pytest.mark.parametrize("context", [3000, 8192])
def test_conversations_lose_the_turns_that_do_not_fit(context: int) -> None:
    cut = traffic(Fixed(500), Fixed(300), context, num_turns=6.0)
    found, drawn = load_of(cut), describe(cut)
    assert drawn.cut_fraction > 0
    assert found.prompt == pytest.approx(drawn.mean_prompt_tokens, rel=0.03)
    assert found.output == pytest.approx(drawn.mean_output_tokens, rel=0.03)


def test_prompts_of_which_next_to_none_fits_are_refused() -> None:
    with pytest.raises(ScenarioError, match=r"prompts of .* and more for a context of 10"):
        traffic(Lognormal(1000, 0.5), Fixed(20), 10)
    traffic(Lognormal(1000, 0.5), Fixed(20), 500)


def test_closed_form_and_simulation_are_of_the_same_requests() -> None:
    """Answers of 1,000 tokens are cut to 192; counted whole, the closed form was beyond what a replica holds."""
    run = dh.simulate_serve("smollm2-135m", chip="h100-sxm", isl=8000, osl=1000, rate=8, requests=1500)
    assert run.verdict == "yes"
    assert run.headline.endswith(
        "All requests are cut to the context of 8,192 tokens: to 8,000 in and 192 out on average."
    )
    (table,) = (one for one in run.tables if one.title == "closed form beside it")
    for _, simulated, closed, _ in table.rows:
        assert closed == pytest.approx(simulated, rel=0.1)


def test_a_plan_says_to_what_all_its_requests_are_cut() -> None:
    plan = dh.plan_serve("smollm2-135m", chips=["h100-sxm"], isl=8000, osl=1000, rate=8)
    assert " cut to the context of 8,192 tokens: to 8,000 in and 192 out on average." in plan.headline
    assert plan.results["output_tokens"] == 192
    shown = dh.show_techniques("smollm2-135m", chip="h100-sxm", isl=8000, osl=1000, rate=8)
    assert shown.headline.endswith("to 8,000 in and 192 out on average.")
