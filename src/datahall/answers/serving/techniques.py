"""`show techniques`: what each serving technique gives on a load, alone and together."""

from __future__ import annotations

from math import isfinite

import msgspec

from datahall.answer import Answer, Cell, Column, StackChart, Table, keyed
from datahall.answers.context import context_notes
from datahall.answers.follow import follow
from datahall.answers.serving.idle import cut_share, idle_in_closed_form
from datahall.answers.serving.words import all_cut, described, implied, on_switches
from datahall.cluster.used import used_by_groups
from datahall.cluster.wiring import wiring_of
from datahall.inference.closed_form.ladder import GROUPS, Ladder, gain_figure, ladder
from datahall.inference.closed_form.load import load_of
from datahall.inference.closed_form.techniques import Effect
from datahall.inference.engine.asked import deployment_of
from datahall.inference.engine.build import replica_of, speculation_of
from datahall.inference.engine.replica import Replica, joined
from datahall.scenario.requests import requests_of
from datahall.scenario.scenario import Scenario
from datahall.scenario.sections.traffic import Traffic
from datahall.scenario.sections.views import Prefix
from datahall.scenario.sections.wanted.promise import Promise
from datahall.scenario.words import FREE_DRAFT
from datahall.units import fmt, short
from datahall.workload.traffic.traffic import Traffic as Requests
from datahall.workload.traffic.traffic import describe

COLUMNS = (
    Column("technique"),
    Column("held by a chip [1/s]", "count", key="chip_requests_per_s"),
    Column("gain", "ratio"),
    Column("mean TTFT", "s", key="ttft_s"),
    Column("mean TPOT", "s", key="tpot_s"),
    Column("remark", aside=True),
)


def show_techniques(scenario: Scenario) -> Answer:
    """Batching, chunked prefill, prefix cache, speculation, quantisation and disaggregation on one load."""
    deployment, said = deployment_of(scenario), scenario.one(Traffic)
    model = scenario.model()
    drafting = msgspec.structs.replace(deployment, draft=deployment.draft or FREE_DRAFT)
    speculation = speculation_of(drafting, scenario.model(), scenario.catalog)
    assert speculation is not None
    assert said.rate_per_s is not None
    traffic = requests_of(said, deployment.max_context or model.max_context)
    steps = ladder(
        replica_of(
            msgspec.structs.replace(deployment, draft="", tp=deployment.tp or GROUPS[-1]),
            model,
            scenario.catalog,
            wiring_of(scenario),
            hands_over=True,
        ),
        load_of(traffic),
        scenario.one(Promise),
        said.rate_per_s,
        cached=scenario.one(Prefix).cached_fraction,
        speculation=speculation,
        tp=deployment.tp,
    )
    return _answer(scenario, steps, deployment.precision, traffic)


def _answer(scenario: Scenario, steps: Ladder, precision: str, traffic: Requests) -> Answer:
    reference, plain, alone = steps.reference, steps.setting, steps.without[0]
    words = " + ".join(step.name for step in steps.together) or "nothing more"
    gain, cut = gain_figure(steps), describe(traffic).cut_fraction
    lengths = steps.setting.load.prompt, steps.setting.load.output
    return Answer(
        kind="serving techniques",
        inputs={
            "chip": plain.replica.chip.name,
            "tp": plain.replica.tp,
            "draft": steps.speculation.draft,
            "num_draft": steps.speculation.num_draft,
            "acceptance_fraction": steps.speculation.acceptance,
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
                for one in steps.alone
                if isfinite(one.held_per_s)
            },
        },
        tables=(_alone(steps), _together(steps), _fading(steps)),
        figure=gain,
        charts=(_chart(steps),),
        notes=(
            "closed form: at these loads simulation may hold less; plan serve plays them",
            "formats in fewer bits change what the model answers; that is not weighed here",
            *_speculation(steps),
            *cut_share(scenario, cut, traffic.max_context),
            *context_notes(plain.replica.model, plain.replica.max_context),
            *idle_in_closed_form(scenario, plain.replica),
            *implied(scenario),
            *on_switches([plain.replica]),
        ),
        sources=(plain.replica.engine.source,),
        next_commands=_next(scenario, plain.replica, precision),
    )


def _speculation(steps: Ladder) -> tuple[str, ...]:
    """What the speed-ups by batch show: that drafting pays and fades, that it never pays, or that it always does."""
    gains = [gain for _, gain in steps.fading]
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
    return (
        follow(
            scenario,
            "plan serve",
            {"chips": [replica.chip.name], "precision": [precision], "tp": None, **free, **unsaid},
        ),
    )


def _alone(steps: Ladder) -> Table:
    promise = steps.promise
    at = fmt(promise.percentile, "percentile")
    limits = f"TTFT ≤ {fmt(promise.ttft_s, 's')} and TPOT ≤ {fmt(promise.tpot_s, 's')} at {at}"
    rows = (*steps.without, steps.reference, *steps.alone)
    return Table(
        title="alone",
        columns=COLUMNS,
        rows=tuple(_row(row, steps) for row in rows),
        marked=len(steps.without),
        note=f"times at {steps.rate_per_s:,.10g} requests/s a replica; held: {limits}",
    )


def _together(steps: Ladder) -> Table:
    return Table(
        title="together, the best next",
        columns=COLUMNS,
        rows=tuple(_row(row, steps) for row in steps.together),
    )


def _fading(steps: Ladder) -> Table:
    return Table(
        title="speculation as the batch grows",
        columns=(Column("sequences", "count"), Column("faster", "ratio")),
        rows=steps.fading,
    )


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


def _row(effect: Effect, steps: Ladder) -> tuple[Cell, ...]:
    gain = steps.gain_of(effect)
    return (
        effect.title,
        effect.held_per_s if isfinite(effect.held_per_s) else None,
        gain if isfinite(gain) else None,
        effect.ttft_s if isfinite(effect.ttft_s) else None,
        effect.tpot_s if isfinite(effect.tpot_s) else None,
        effect.note,
    )
