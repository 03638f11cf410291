"""What a million tokens of a service cost, each kind by the time it takes of the chips.

    output C · T₀/T / answers,   input C · (T − T₀)/T / computed prompt tokens,   cached: what reading it takes of that

where a replica costs C an hour and a mean step takes T with its prompts and T₀ without them,

so that what all tokens of an hour cost is what the replica costs: nothing is left over, nothing counts twice.
"""

from __future__ import annotations

import msgspec

from datahall.breakdown import Breakdown, derived, modelled, product, quotient
from datahall.inference.closed_form.capacity import Held
from datahall.inference.closed_form.steady_state import State
from datahall.inference.step.figure import step_figure
from datahall.units import HOUR_S, MTOK


class TokenCosts(msgspec.Struct, frozen=True, kw_only=True):
    """A million tokens of each kind; cached is None where no cache is counted on."""

    input: Breakdown
    output: Breakdown
    cached: Breakdown | None
    blended: Breakdown  # of all tokens


def token_costs(held: Held, state: State, replica_hour: Breakdown, rate_per_s: float) -> TokenCosts:
    """What tokens cost on a replica that gets so many requests a second and costs so much an hour [USD/h]."""
    load = held.load
    with_s, without_s, read_s = _steps_s(held, state)
    prompts = 1.0 - without_s / with_s
    cached_share = prompts * read_s / (with_s - without_s) if with_s > without_s else 0.0
    return TokenCosts(
        input=_per_mtok("input", replica_hour, prompts - cached_share, rate_per_s * load.computed),
        output=_per_mtok("output", replica_hour, 1.0 - prompts, rate_per_s * load.output),
        cached=_per_mtok("cached input", replica_hour, cached_share, rate_per_s * load.cached)
        if load.cached
        else None,
        blended=blended_usd_per_mtok("all tokens", replica_hour, rate_per_s * (load.prompt + load.output)),
    )


def blended_usd_per_mtok(name: str, hour: Breakdown, tokens_per_s: float) -> Breakdown:
    """What a million tokens cost where an hour costs so much.

    >>> from datahall.breakdown import given
    >>> day = given("DeepSeek, a day", 87_072.0 / 24, "usd_per_hour")
    >>> round(blended_usd_per_mtok("all tokens", day, 776e9 / 86400).value, 4)
    0.1122
    """
    tokens = product(
        "million tokens of an hour",
        (
            derived("tokens/s", tokens_per_s, "tokens_per_s"),
            derived("an hour, in millions", HOUR_S / MTOK, "s"),
        ),
        "count",
    )
    return quotient(name, hour, tokens, "usd_per_mtok")


def _steps_s(held: Held, state: State) -> tuple[float, float, float]:
    """A mean step with its prompts, without them, and what reading their cached part takes of it [s]."""
    load, replica = held.load, held.replica
    tokens = state.decoding / load.steps * load.computed
    num, context = max(1, round(state.decoding)), load.prompt + load.aged

    def step_s(*chunks: tuple[float, float]) -> float:
        return step_figure(replica, num_decodes=num, mean_context=context, chunks=chunks).figure.value

    without_s = step_s()
    if tokens < 1.0:  # prompts come so seldom that a step of one says what they take
        whole_s = step_s((load.computed, load.cached)) - without_s
        share = tokens / load.computed
        alone_s = step_s((load.computed, 0.0)) - without_s
        return without_s + share * whole_s, without_s, share * max(0.0, whole_s - alone_s)
    with_s = step_s((tokens, load.cached))
    return with_s, without_s, max(0.0, with_s - step_s((tokens, 0.0)))


def _per_mtok(name: str, hour: Breakdown, share: float, tokens_per_s: float) -> Breakdown:
    part = modelled(
        f"time for {name}", share, "fraction", "what a mean step takes with it and without it", hour
    )
    cost = product(f"an hour's {name}", (hour, part), "usd_per_hour")
    return blended_usd_per_mtok(name, cost, tokens_per_s)
