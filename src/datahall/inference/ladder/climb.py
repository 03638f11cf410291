"""Which techniques help a replica on a load: each alone, then the best beside the best, while a chip holds more."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import floor, inf, isfinite, log10, nan

import msgspec

from datahall.breakdown import Breakdown, derived, given, modelled, product, quotient, total
from datahall.catalog.entries.chip import Chip
from datahall.catalog.entries.model import Model
from datahall.catalog.number_formats import is_wide
from datahall.errors import InfeasibleError, option
from datahall.inference.closed_form.bottleneck import mean_step
from datahall.inference.closed_form.held_figure import rank_figure
from datahall.inference.closed_form.steady_state import Load
from datahall.inference.early import check_format
from datahall.inference.engine.replica import Replica, Speculation
from datahall.inference.ladder.shorter import summarised, windowed
from datahall.inference.ladder.smaller import SHARES, Routed, as_effect, instead, routed
from datahall.inference.ladder.techniques import (
    GROUPS,
    Effect,
    Setting,
    Technique,
    chunked,
    disaggregated,
    effect,
    narrow_cache,
    prefix_cached,
    quantised,
    shares_steps,
    speculative,
    speed_up,
)
from datahall.inference.ladder.without import (
    Places,
    contiguous,
    graphs_speed_up,
    launched,
    longest_of,
    one_by_one,
    places_of,
    recomputed,
    unchunked,
)
from datahall.inference.step.kernels import sharding_of
from datahall.scenario.sections.views import Lighter
from datahall.scenario.sections.wanted.promise import Promise
from datahall.workload.precision import COMMON, PRESETS

BATCHES = (1, 8, 32, 128)  # sequences at which speculation is shown to fade
USUAL_LIGHTER = Lighter()
WORTH = 1.01  # a further technique must give so much more


class Ladder(msgspec.Struct, frozen=True, kw_only=True):
    """The setting as it is, without what it has, with each technique alone, and with the best ones together."""

    setting: Setting
    promise: Promise
    rate_per_s: float
    speculation: Speculation
    reference: Effect
    without: tuple[Effect, ...]
    alone: tuple[Effect, ...]
    together: tuple[Effect, ...]
    speculation_ratio: tuple[
        tuple[int, float], ...
    ]  # sequences, and how many times faster speculation decodes them
    graphs_ratio: tuple[tuple[int, float], ...]  # the same of graphs; nothing where the engine has none
    lighter: tuple[Effect, ...]  # alone, of which each changes what is answered
    small: Setting | None  # the smaller model, where there is one
    routed: tuple[Routed, ...]  # to it, by the share of the requests
    places: tuple[Places, ...]  # of the cache, by how it is divided

    @property
    def final(self) -> Effect:
        """All techniques that were worth it."""
        return self.together[-1] if self.together else self.reference

    @property
    def batching_ratio(self) -> float:
        """What batching gives: requests per second over those one at a time, without limits."""
        return self.reference.most_per_s / self.without[0].most_per_s

    def gain_of(self, effect: Effect | Routed) -> float:
        """What a chip holds with it over what it holds as it is."""
        return effect.held_per_s / self.reference.held_per_s


def gain_figure(steps: Ladder) -> Breakdown:
    """What a chip holds with the best techniques together over what it holds as it is."""
    reached = _chip_figure("held with the techniques together", steps.final, steps.promise)
    before = _chip_figure("held as it is", steps.reference, steps.promise)
    return quotient("gain", reached, before, "ratio", "requests per second and chip")


def _chip_figure(name: str, effect: Effect, promise: Promise) -> Breakdown:
    """Requests per second of a chip: a replica's over its chips, or those of the two pools that share the work."""
    most, prompts = effect.held, effect.prompts
    assert most is not None
    step = mean_step(most.replica, most.load, most.state).figure
    chips = derived("chips of a replica", most.replica.num_chips, "count")
    ranks = derived("ranks", most.replica.dp, "count")
    answers = product("held by a replica", (rank_figure(most, step), ranks), "requests/s")
    if prompts is None:
        return quotient(name, answers, chips, "requests/s")
    limit = given("TTFT limit", promise.ttft_s, "s", field="ttft")
    computed, handed = (
        modelled(part, time_s, "s", "step times of the replica", derived("prompt", most.load.prompt, "count"))
        for part, time_s in (("a prompt alone", prompts.prompt_s), ("its handover", prompts.handed_s))
    )
    queue = "the most at which waiting (M/D/1), service and handover keep the limit, by bisection"
    taken = modelled("prompts of a replica", prompts.rate_per_s, "requests/s", queue, computed, handed, limit)
    chip_s = total(
        "chip time of a request",
        (
            quotient("for its prompt", chips, taken, "s"),
            quotient("for its answer", chips, answers.named("answers of a replica"), "s"),
        ),
    )
    return quotient(name, derived("one chip", 1.0, "count"), chip_s, "requests/s")


def ladder(
    replica: Replica,
    load: Load,
    promise: Promise,
    rate_per_s: float,
    *,
    cached: float,
    speculation: Speculation,
    small: Model | None = None,
    lighter: Lighter = USUAL_LIGHTER,
    tp: int | None = None,
) -> Ladder:
    """The techniques of a replica that gets so many requests per second, on the fewest chips that hold them."""
    check_format(replica.chip, replica.precision)
    plain = _placed(replica, load, promise, rate_per_s, tp)
    techniques = _techniques(plain, cached, speculation)
    alone = tuple(one.effect(plain, promise, rate_per_s) for one in techniques)
    useful = [one for one, tried in zip(techniques, alone, strict=True) if isfinite(tried.held_per_s)]
    reference = effect("as it is", plain, promise, rate_per_s)
    without = [
        msgspec.structs.replace(_without(name, change, plain, promise, rate_per_s), detail=detail)
        for name, detail, change in _taken_away(plain)
    ]
    shorter = _shorter(plain, promise, rate_per_s, lighter)
    fewer = _Smaller(plain, reference, promise, rate_per_s, small) if small is not None else None
    return Ladder(
        setting=plain,
        promise=promise,
        rate_per_s=rate_per_s,
        speculation=speculation,
        reference=reference,
        without=tuple(without),
        alone=alone,
        together=tuple(_together(plain, useful, reference, promise, rate_per_s)),
        speculation_ratio=tuple(
            (batch, speed_up(plain.replica, speculation, batch, plain.load.prompt)) for batch in BATCHES
        ),
        graphs_ratio=tuple((batch, graphs_speed_up(plain, batch)) for batch in BATCHES)
        if plain.replica.engine.graphs
        else (),
        lighter=(*shorter, *(fewer.effects(lighter.easy_fraction) if fewer is not None else ())),
        small=fewer.small[0] if fewer is not None else None,
        routed=fewer.by_share(lighter.easy_fraction) if fewer is not None else (),
        places=places_of(plain.replica, load),
    )


def _taken_away(plain: Setting) -> list[tuple[str, str, Callable[[Setting], Setting]]]:
    """What a replica has, with what is said of it; batching first."""
    reserved = f"{longest_of(plain.replica):,} tokens each"
    return [
        ("one request at a time", "", one_by_one),
        *([("without chunked prefill", "", unchunked)] if shares_steps(plain) else []),
        ("without a KV cache", "", recomputed),
        ("contiguous cache", reserved, contiguous),
        *([("without graphs", "", launched)] if plain.replica.engine.graphs else []),
    ]


def _without(
    name: str, change: Callable[[Setting], Setting], plain: Setting, promise: Promise, rate: float
) -> Effect:
    """A replica without something; where it then holds no sequence, why."""
    try:
        return effect(name, change(plain), promise, rate)
    except InfeasibleError as error:
        return Effect(name=name, held_per_s=0.0, ttft_s=nan, tpot_s=nan, note=error.message)


def _shorter(plain: Setting, promise: Promise, rate: float, said: Lighter) -> list[Effect]:
    """A window, and a summary."""
    through = windowed(plain, said.window)
    seen = (
        msgspec.structs.replace(effect("sliding window", None, promise, rate), note=through)
        if isinstance(through, str)
        else effect("sliding window", through, promise, rate)
    )
    read = summarised(plain, said.summary_fraction, said.summary_requests)
    kept = f"{100 * said.summary_fraction:g} % of the prompt, written once for {said.summary_requests:,}"
    return [
        msgspec.structs.replace(seen, detail=f"{said.window:,} tokens"),
        msgspec.structs.replace(effect("summarised context", read, promise, rate), detail=kept),
    ]


class _Smaller:
    """A smaller model beside the large one."""

    def __init__(self, plain: Setting, large: Effect, promise: Promise, rate: float, model: Model) -> None:
        self.plain, self.large, self.promise, self.rate = plain, large, promise, rate
        self.small = instead(plain, model, promise, rate)

    def routed(self, easy: float) -> Routed:
        return routed(self.plain, self.large, self.small, self.promise, self.rate, easy)

    def effects(self, easy: float) -> tuple[Effect, Effect]:
        """For all requests, and for the easy ones."""
        setting, alone = self.small
        where = f"{setting.replica.model.name}, tp {setting.replica.tp}"
        named = msgspec.structs.replace(alone, name="smaller model", detail=where)
        to_it = f"{100 * easy:g} % to {setting.replica.model.name}"
        return named, as_effect(self.routed(easy), "easy requests routed", to_it)

    def by_share(self, easy: float) -> tuple[Routed, ...]:
        return tuple(self.routed(share) for share in sorted({*SHARES, easy}))


def _placed(replica: Replica, load: Load, promise: Promise, rate: float, tp: int | None) -> Setting:
    """The setting on the group asked for, or on the smallest that holds the rate."""
    most_per_s, last = 0.0, Effect(name="", held_per_s=0.0, ttft_s=inf, tpot_s=inf)
    for degree in (tp,) if tp else GROUPS:
        setting = Setting(replica=msgspec.structs.replace(replica, tp=degree), load=load)
        if tp:
            sharding_of(setting.replica)  # refuses what does not divide
        tried = effect("", setting, promise, rate)
        most_per_s = max(most_per_s, tried.held_per_s * setting.replica.num_chips)
        last = tried if tried.remedy or (tried.note and not last.remedy) else last
        if tried.held_per_s * setting.replica.num_chips >= rate or (tp and tried.held_per_s > 0):
            return setting
    where = f"tp {tp} on" if tp else f"up to {GROUPS[-1]} ×"
    lower = f"{floor_to(most_per_s, 3):g}"
    raise InfeasibleError(
        f"no group of {where} {replica.chip.name} serves {replica.model.name} at {rate:,.10g} requests/s within "
        f"the limits: {f'the best holds {lower}' if most_per_s else last.note}",
        field="rate" if most_per_s else "",
        hint=f"{option('rate', lower)} of one replica, a longer {option('ttft')} or a longer {option('tpot')}"
        if most_per_s
        else last.remedy or f"another {option('chip')}",
    )


def floor_to(value: float, digits: int) -> float:
    """A number with so many digits that is not larger.

    >>> floor_to(62.987, 3), floor_to(0.056789, 3)
    (62.9, 0.0567)
    """
    places = digits - 1 - floor(log10(value)) if value > 0 else 0
    return floor(value * 10.0**places) / 10.0**places


def _techniques(plain: Setting, cached: float, how: Speculation) -> tuple[Technique, ...]:
    kept = f"{how.draft}, {how.num_draft} drafted, {100 * how.acceptance:.0f} % kept"
    return (
        *(() if shares_steps(plain) else (Technique(name="chunked prefill", change=chunked),)),
        Technique(name="prefix cache", detail=f"{100 * cached:.0f} % found", change=prefix_cached(cached)),
        Technique(name="speculation", detail=kept, change=speculative(how)),
        *_narrower(plain.replica.chip),
        Technique(name="8-bit cache", change=narrow_cache),
        Technique(name="disaggregation", change=disaggregated),
    )


def _narrower(chip: Chip) -> list[Technique]:
    """Formats of fewer bits for the linear layers alone: those that multiply in them first."""
    narrow = {
        name: PRESETS[name]
        for name in COMMON
        if not is_wide(PRESETS[name].weights) and is_wide(PRESETS[name].kv)
    }
    whole = [name for name, one in narrow.items() if one.quantises_activations]
    named = {
        **{
            name: f"{name} weights and activations"
            for name in whole
            if chip.multiplies(narrow[name].operands)
        },
        **{name: f"{one.weights} weights" for name, one in narrow.items() if name not in whole},
    }
    return [Technique(name=title, change=quantised(name), weighs=True) for name, title in named.items()]


def _together(
    plain: Setting,
    techniques: Sequence[Technique],
    reference: Effect,
    promise: Promise,
    rate: float,
) -> list[Effect]:
    """Greedily: the best technique, then the best beside it, while a chip holds more."""
    current, best, steps = plain, reference, []
    left = list(techniques)
    while left:
        tried = [(one.effect(current, promise, rate), one) for one in left]
        tried = [(step, one) for step, one in tried if isfinite(step.held_per_s)]
        if not tried:
            break
        best_step, taken = max(tried, key=lambda pair: pair[0].held_per_s)
        setting = taken.change(current)
        if setting is None or best_step.held_per_s <= WORTH * best.held_per_s:
            break
        steps.append(best_step)
        current, best = setting, best_step
        left = [one for one in left if one is not taken and not (one.weighs and taken.weighs)]
    return steps
