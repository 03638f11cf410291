"""`datahall show techniques`: what each serving technique gives on a load, alone and together."""

from __future__ import annotations

from math import isfinite

import msgspec

from datahall.answer import Answer, Cell, Column, Table
from datahall.answers.bounds import find_model, opened, whole
from datahall.answers.serving.plan import positive, share_of
from datahall.answers.serving.words import MOST_DRAFTED, continuous, described, load_of
from datahall.catalog import Catalog
from datahall.errors import InfeasibleError, ScenarioError, UnsupportedError
from datahall.inference.closed_form.techniques import (
    Effect,
    Setting,
    Technique,
    chunked,
    disaggregated,
    effect,
    narrow_cache,
    one_by_one,
    prefix_cached,
    quantised,
    shares_steps,
    speculative,
    speed_up,
    unchunked,
)
from datahall.inference.engine.engine import engine_on
from datahall.inference.engine.replica import Replica, Speculation
from datahall.inference.memory.fit import why_not
from datahall.inference.step.kernels import sharding_of
from datahall.scenario.promise import Promise
from datahall.units import fmt
from datahall.workload.precision import Precision
from datahall.workload.traffic.options import traffic_from

BATCHES = (1, 8, 32, 128)  # sequences at which speculation is shown to fade


def show_techniques(
    model: str,
    *,
    chip: str,
    rate: str | float,
    tp: str | int = 0,
    isl: str | int | None = None,
    osl: str | int | None = None,
    traffic: str = "",
    ttft: str | float = "1s",
    tpot: str | float = "50ms",
    percentile: str | float = "95",
    precision: str = "bf16",
    cached: str | float = "30 %",
    draft: str = "ngram",
    num_draft: str | int = 3,
    acceptance: str | float = "50 %",
    engine: str = "vllm",
    catalog: Catalog | None = None,
) -> Answer:
    """Batching, chunked prefill, prefix cache, speculation, quantisation and disaggregation on one load."""
    shelf = opened(catalog)
    continuous(engine)
    known, part = find_model(model, shelf), shelf.chip(chip)
    slo = Promise(
        ttft_s=positive("ttft", ttft, "s"),
        tpot_s=positive("tpot", tpot, "s"),
        percentile=share_of("percentile", percentile),
    )
    offered = positive("rate", rate, "count")
    coming = traffic_from(rate=rate, preset_name=traffic, isl=isl, osl=osl, max_context=known.max_context)
    base = Replica(
        model=known, chip=part, engine=engine_on(engine, part), precision=Precision.named(precision)
    )
    how = Speculation(
        num_draft=whole("num-draft", num_draft, at_most=MOST_DRAFTED),
        acceptance=share_of("acceptance", acceptance),
        draft=draft,
    )
    load = load_of(coming)
    why = why_not(part, base.precision)
    if why:
        raise UnsupportedError(f"{part.title} {why}", hint=f"it has {', '.join(part.peak_flop_per_s)}")
    degree = whole("tp", tp, at_least=0)
    plain = _placed(base, degree, load_setting=Setting(replica=base, load=load), slo=slo, rate=offered)
    ways = _ways(plain, share_of("cached", cached, zero=True), how)
    alone = [effect(name, technique(plain), slo, offered) for name, technique in ways.items()]
    reference = effect("as it is", plain, slo, offered)
    without = [effect("one request at a time", one_by_one(plain), slo, offered)]
    if shares_steps(plain):
        without.append(effect("without chunked prefill", unchunked(plain), slo, offered))
    together = _together(plain, ways, alone, reference, slo, offered)
    asked: dict[str, Cell] = {
        "model": known.name, "chip": part.name, "tp": plain.replica.tp, "requests_per_s": offered,
        "prompt_tokens": load.prompt, "output_tokens": load.output, "engine": engine, "precision": precision,
        "cached_fraction": share_of("cached", cached, zero=True), "draft": draft,
        "num_draft": how.num_draft, "acceptance_fraction": how.acceptance,
    }  # fmt: skip
    return _answer(plain, asked, reference, without, alone, together, how, slo)


def _placed(base: Replica, tp: int, *, load_setting: Setting, slo: Promise, rate: float) -> Setting:
    """The setting on the group asked for, or on the smallest that carries the rate."""
    last = ""
    for degree in [tp] if tp else [1, 2, 4, 8, 16]:
        setting = msgspec.structs.replace(load_setting, replica=msgspec.structs.replace(base, tp=degree))
        if tp:
            sharding_of(setting.replica).check(base.model)
        found = effect("", setting, slo, rate)
        last = found.note or last
        if found.carried_per_s * degree >= rate or (tp and found.carried_per_s > 0):
            return setting
    raise InfeasibleError(
        f"no group of {f'tp {tp} on' if tp else 'up to 16 ×'} {base.chip.name} serves {base.model.name} at {rate:g} "
        "requests/s as promised",
        where=last,
        hint="a lower --rate (of one replica), a longer --ttft or --tpot, or --tp",
    )


def _ways(plain: Setting, cached: float, how: Speculation) -> dict[str, Technique]:
    peaks = plain.replica.chip.peak_flop_per_s
    ways: dict[str, Technique] = {} if shares_steps(plain) else {"chunked prefill": chunked}
    ways[f"prefix cache, {cached:.0%} found"] = prefix_cached(cached)
    ways[f"speculation ({how.draft}, {how.num_draft} drafted, {how.acceptance:.0%} kept)"] = speculative(how)
    if "fp8" in peaks:
        ways["fp8 weights and activations"] = quantised("fp8")
    if "fp4" in peaks:
        ways["nvfp4 weights and activations"] = quantised("nvfp4")
    return ways | {
        "4-bit weights": quantised("w4a16"),
        "8-bit cache": narrow_cache,
        "disaggregation": disaggregated,
    }


def _together(
    plain: Setting,
    ways: dict[str, Technique],
    alone: list[Effect],
    reference: Effect,
    slo: Promise,
    rate: float,
) -> list[Effect]:
    """Greedily: the best technique, then the best beside it, while a chip carries more."""
    chosen, current, steps = plain, reference, []
    left = {one.name: ways[one.name] for one in alone if isfinite(one.carried_per_s)}
    while left:
        tried: list[tuple[Effect, Setting]] = []
        for name, technique in left.items():
            setting = technique(chosen)
            if setting is not None:
                tried.append((effect(name, setting, slo, rate), setting))
        if not tried:
            break
        best, setting = max(tried, key=lambda pair: pair[0].carried_per_s)
        if best.carried_per_s <= 1.01 * current.carried_per_s:
            break
        steps.append(best)
        chosen, current = setting, best
        left = {
            name: technique
            for name, technique in left.items()
            if name != best.name and not (_formats(name) and _formats(best.name))
        }
    return steps


def _formats(name: str) -> bool:
    """Whether a technique chooses the format of the weights: only one can."""
    return "weights" in name


def _row(one: Effect, reference: Effect) -> tuple[Cell, ...]:
    gain = one.carried_per_s / reference.carried_per_s if reference.carried_per_s else None
    known = gain is not None and isfinite(gain)
    return (
        one.name,
        round(one.carried_per_s, 4) if isfinite(one.carried_per_s) else None,
        gain if known else None,
        one.ttft_s if isfinite(one.ttft_s) else None,
        one.tpot_s if isfinite(one.tpot_s) else None,
        one.note,
    )


COLUMNS = (
    Column("technique"),
    Column("carried by a chip [1/s]", "count", key="chip_requests_per_s"),
    Column("gain", "ratio"),
    Column("mean TTFT", "s", key="ttft_s"),
    Column("mean TPOT", "s", key="tpot_s"),
    Column("remark", aside=True),
)


def _answer(
    plain: Setting,
    asked: dict[str, Cell],
    reference: Effect,
    without: list[Effect],
    alone: list[Effect],
    together: list[Effect],
    how: Speculation,
    slo: Promise,
) -> Answer:
    if not reference.carried_per_s:
        raise ScenarioError(reference.note, hint="a longer --ttft or --tpot, or more chips (--tp)")
    final = together[-1] if together else reference
    words = " + ".join(one.name.split(",")[0].split(" (")[0] for one in together) or "nothing more"
    batching = reference.most_per_s / without[0].most_per_s
    return Answer(
        kind="serving techniques",
        inputs=asked,
        headline=(
            f"{words}: together {final.carried_per_s / reference.carried_per_s:.2f}× what "
            f"{described(plain.replica, str(asked['precision']))} carries of {plain.replica.model.title}."
        ),
        binding=(
            f"As it is a chip carries {reference.carried_per_s:.3g} requests/s under the promise and holds "
            f"{reference.most_per_s:.3g} without one, {batching:.1f}× what it does one request at a time."
        ),
        results={
            "chip_requests_per_s": reference.carried_per_s,
            "together_ratio": final.carried_per_s / reference.carried_per_s,
            **{
                f"{one.name}_ratio": one.carried_per_s / reference.carried_per_s
                for one in alone
                if isfinite(one.carried_per_s)
            },
        },
        tables=(
            Table(
                title="alone",
                columns=COLUMNS,
                rows=tuple(_row(one, reference) for one in (*without, reference, *alone)),
                marked=len(without),
                note=f"times at {float(str(asked['requests_per_s'])):g} requests/s a replica; carried: with TTFT ≤ "
                f"{fmt(slo.ttft_s, 's')} and TPOT ≤ {fmt(slo.tpot_s, 's')} at P{slo.percentile * 100:g}",
            ),
            Table(
                title="together, the best next",
                columns=COLUMNS,
                rows=tuple(_row(one, reference) for one in together),
            ),
            _fading(plain, how),
        ),
        notes=(
            "formats in fewer bits change what the model answers; that is not weighed here",
            "speculation helps where steps are bound by memory: it fades as the batch grows",
        ),
        sources=(plain.replica.engine.source,),
        next_commands=(
            f"datahall plan serve {plain.replica.model.name} --rate {float(str(asked['requests_per_s'])):g} "
            f"--isl {plain.load.prompt:.0f} --osl {plain.load.output:.0f} --chips {plain.replica.chip.name}",
        ),
    )


def _fading(plain: Setting, how: Speculation) -> Table:
    rows = tuple((batch, speed_up(plain.replica, how, batch, plain.load.prompt)) for batch in BATCHES)
    return Table(
        title="speculation as the batch grows",
        columns=(Column("sequences", "count"), Column("faster", "ratio")),
        rows=rows,
    )
