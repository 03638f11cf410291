"""`show techniques`: what each serving technique gives on a load, alone and together."""

from __future__ import annotations

from math import isfinite

from datahall.answer import Answer, StackChart, keyed
from datahall.answers.context import context_notes
from datahall.answers.follow import follow
from datahall.answers.serving.idle import cut_share, idle_in_closed_form, idle_tiers_of_turns
from datahall.answers.serving.technique_tables import (
    alone_table,
    fading_table,
    lighter_table,
    places_tables,
    routed_tables,
    tiers_tables,
    together_table,
)
from datahall.answers.serving.words import all_cut, described, implied, on_switches
from datahall.cluster.used import used_by_groups
from datahall.errors import option
from datahall.inference.engine.replica import Replica, joined
from datahall.inference.ladder.climb import Ladder, gain_figure
from datahall.inference.ladder.published import published
from datahall.planner.serving.ladder.question import Climbed, climbed
from datahall.scenario.scenario import Scenario
from datahall.units import fmt, short
from datahall.workload.traffic.traffic import describe


def show_techniques(scenario: Scenario) -> Answer:
    """What an engine has taken away, each technique alone, the best together, and what changes the answers."""
    return _answer(scenario, climbed(scenario))


def _answer(scenario: Scenario, found: Climbed) -> Answer:
    steps, precision, traffic = found.ladder, found.precision, found.traffic
    reference, plain, alone = steps.reference, steps.setting, steps.without[0]
    words = " + ".join(step.name for step in steps.together) or "nothing more"
    gain, cut = gain_figure(steps), describe(traffic).cut_fraction
    lengths = steps.setting.load.prompt, steps.setting.load.output
    cost = found.million_usd(reference.held_per_s)
    return Answer(
        kind="serving techniques",
        inputs={
            "chip": plain.replica.chip.name,
            "tp": plain.replica.tp,
            "draft": steps.speculation.draft,
            "num_draft": steps.speculation.num_draft,
            "acceptance_fraction": steps.speculation.acceptance,
            **({"small": steps.small.replica.model.name} if steps.small is not None else {}),
            **used_by_groups(scenario, [joined(plain.replica, hands_over=True)]),
        },
        headline=(
            f"{words}: together {gain.value:.2f}× what {described(plain.replica, precision)} holds of "
            f"{plain.replica.model.title or plain.replica.model.name}.{all_cut(cut, *lengths, traffic.max_context)}"
        ),
        binding=(
            f"As it is a chip holds {short(reference.held_per_s)} requests/s within the limits and "
            f"{short(reference.most_per_s)} requests/s without them; one request at a time "
            f"{short(alone.held_per_s)} requests/s within and {short(alone.most_per_s)} requests/s without: batching "
            f"gives {steps.batching_ratio:,.1f}× without them."
        ),
        results={
            "chip_requests_per_s": reference.held_per_s,
            "together_ratio": gain.value,
            **{
                keyed(one.name, "ratio"): steps.gain_of(one)
                for one in (*steps.alone, *steps.lighter)
                if isfinite(one.held_per_s)
            },
            **({"million_tokens_usd": cost} if cost is not None else {}),
        },
        tables=(
            alone_table(found),
            together_table(found),
            lighter_table(found),
            *routed_tables(found),
            *tiers_tables(found),
            *places_tables(found),
            fading_table(found),
        ),
        figure=gain,
        charts=(_chart(steps),),
        notes=(
            "closed form: at these loads simulation may hold less; plan serve plays them",
            "formats in fewer bits change what the model answers; that is not weighed here",
            *_notes(found),
            *_speculation(steps),
            *cut_share(scenario, cut, traffic.max_context),
            *context_notes(plain.replica.model, plain.replica.max_context),
            *idle_in_closed_form(scenario, plain.replica),
            *idle_tiers_of_turns(scenario, bool(found.tiers)),
            *implied(scenario),
            *on_switches([plain.replica]),
        ),
        sources=(plain.replica.engine.source, *(one.source for one in published())),
        next_commands=_next(scenario, plain.replica, precision),
    )


def _notes(found: Climbed) -> tuple[str, ...]:
    market, steps = found.market, found.ladder
    price = (
        f"no cost: {market.why_not}"
        if market.price is None
        else f"cost: {fmt(market.price.value, 'usd_per_hour')} for a chip rented on demand, busy with what it holds"
    )
    missing = "no smaller model reads the same tokens as {}: one can be named with {}"
    return (
        price,
        *(
            (missing.format(steps.setting.replica.model.name, option("small")),)
            if steps.small is None
            else ()
        ),
        *_other_tokens(found),
        "who tells easy requests from hard ones is not counted, nor what is tuned on them",
        f"published: {'; '.join(f'{one.of}: {one.named}' for one in published())}",
    )


def _other_tokens(found: Climbed) -> tuple[str, ...]:
    """That a smaller model which was named counts in other tokens."""
    large, small = found.ladder.setting.replica.model, found.ladder.small
    if small is None or small.replica.model.vocab == large.vocab:
        return ()
    return (f"{small.replica.model.name} reads other tokens than {large.name}, and takes as many here",)


def _speculation(steps: Ladder) -> tuple[str, ...]:
    """What the speed-ups by batch show: that drafting pays and fades, that it never pays, or that it always does."""
    gains = [gain for _, gain in steps.speculation_ratio]
    if max(gains) <= 1.0:
        return ("speculation slows every batch here: too few of the drafted tokens are kept",)
    if gains[-1] < gains[0]:
        return ("speculation helps where steps are bound by memory: it fades as the batch grows",)
    return ()


def _next(scenario: Scenario, replica: Replica, precision: str) -> tuple[str, ...]:
    """A plan with such a replica; one cut otherwise than by tensor parallelism a plan cannot be asked for."""
    free = {"tp": replica.tp} if replica.tp == replica.num_chips else {}
    unsaid = (
        {} if scenario.given("draft") else {"num_draft": None, "acceptance": None}
    )  # a plan drafts as asked
    plan = follow(
        scenario,
        "plan serve",
        {"chips": [replica.chip.name], "precision": [precision], "tp": None, **free, **unsaid},
    )
    return (plan,)


def _chart(steps: Ladder) -> StackChart:
    """What a chip holds: as it is or with less, with each technique alone, and with one after the other."""
    groups = {
        "as it is, or with less": (*steps.without, steps.reference),
        "one alone": steps.alone,
        "each beside those above it": steps.together,
    }
    held = {
        name: [effect for effect in effects if isfinite(effect.held_per_s)]
        for name, effects in groups.items()
    }
    shown = [(name, effect) for name, effects in held.items() for effect in effects]
    return StackChart(
        title="what a chip holds within the limits",
        unit="requests/s",
        rows=tuple(effect.title for _, effect in shown),
        parts={
            name: tuple(effect.held_per_s if group == name else 0.0 for group, effect in shown)
            for name in held
            if held[name]
        },
    )
