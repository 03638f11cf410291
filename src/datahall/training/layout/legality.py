"""Which layouts can run: every rule, the first one that is broken, and the nearest values that break none.

A suggestion is itself put to all the rules, with data parallelism over the chips left, before it is made.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil, gcd
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from datahall.catalog.entries.model import Model
from datahall.counted import counted
from datahall.errors import ScenarioError, nearest, option
from datahall.scenario.words import COMPRESSIONS, CONTEXT_EXCHANGES, FEEDING_BACK, MODULES, OFFLOADS, TIERS
from datahall.training.layout.codes import offload_parts
from datahall.training.layout.modules import lacking_module
from datahall.workload.division import Split

if TYPE_CHECKING:
    from datahall.training.layout.layout import Layout

DEGREES = ("tp", "pp", "vpp", "cp", "ep", "dp", "micro_batch")
MOST_MICRO = 100_000  # of a replica in a step
MOST_TRIED = 4096  # values of a degree that are tried for a suggestion


class Broken(NamedTuple):
    """A rule that does not hold: the degree of which other values are tried, what is wrong, what to say where none
    helps; and the input at fault where that is another."""

    field: str
    message: str
    hint: str = ""
    blamed: str = ""


def check_layout(layout: Layout, model: Model, num_chips: int, global_batch: int) -> None:
    """Raise ScenarioError at the first rule that a layout breaks."""
    broken = next(broken_rules(layout, model, num_chips, global_batch), None)
    if broken is not None:
        raise ScenarioError(
            broken.message,
            field=broken.blamed or broken.field,
            hint=_advice(broken, layout, model, num_chips, global_batch) or broken.hint,
        )


def broken_rules(layout: Layout, model: Model, num_chips: int, global_batch: int) -> Iterator[Broken]:
    """Every rule that a layout breaks, those that others rest on first."""
    wrong = list(_values(layout))
    yield from wrong
    if wrong:
        return
    if layout.num_chips != num_chips:
        yield Broken(
            "chips",
            f"tp {layout.tp} × pp {layout.pp} × cp {layout.cp} × dp {layout.dp} is "
            f"{counted(layout.num_chips, 'chip')}, not {num_chips:,}",
        )
    lacks = lacking_module(model, layout.modules)
    if lacks is not None:
        yield Broken(
            "",
            f"{lacks[0]} is to be recomputed, but {model.title or model.name} has no {lacks[1]}",
            blamed="modules",
        )
    yield from _heads(layout, model)
    yield from _experts(layout, model)
    yield from _stages(layout, model)
    yield from _replicas(layout)
    yield from _batches(layout, global_batch)


def _values(layout: Layout) -> Iterator[Broken]:
    """Numbers below one, and words that nobody knows."""
    for name in DEGREES:
        if (value := getattr(layout, name)) < 1:
            yield Broken("", f"{option(name, value)}: it must be at least 1", blamed=name)
    for name in ("etp", "shard"):
        if (value := getattr(layout, name)) < 0:
            yield Broken("", f"{name} is {value}; it must be at least 1, or 0 for the usual", blamed=name)
    if layout.zero not in (0, 1, 2, 3):
        yield Broken("", f"zero is {layout.zero}; it must be 0, 1, 2 or 3", blamed="zero")
    parts = [offload_parts(one) for one in layout.offload]
    words = (
        ("context_exchange", "context exchange", [layout.context_exchange], CONTEXT_EXCHANGES),
        ("modules", "recompute module", layout.modules, MODULES),
        ("compress", "compression", [layout.compression], COMPRESSIONS),
        ("offload", "part to offload", [what for what, _ in parts], OFFLOADS),
        ("offload", "tier of offload", [tier for _, tier in parts], TIERS),
    )
    for name, what, seen, known in words:
        for word in seen:
            if word not in known:
                close = nearest(word, known, 1)
                guess = f"did you mean {close[0]}? " if close else ""
                yield Broken("", f'"{word}" is no {what}', f"{guess}one of {', '.join(known)}", name)
    if layout.modules and layout.recompute != "selective":
        yield Broken(
            "",
            f"modules {', '.join(layout.modules)} are named, but recompute is {layout.recompute}",
            option("recompute", "selective"),
            "recompute",
        )
    if "activations" in dict(parts) and layout.recompute == "full":
        yield Broken(
            "",
            "full recomputation keeps nothing worth an offload of activations",
            "one of the two",
            "offload",
        )


def _heads(layout: Layout, model: Model) -> Iterator[Broken]:
    if model.num_heads % layout.tp:
        yield _indivisible("tp", layout.tp, "attention heads", model.num_heads)
        return
    try:
        Split(tp=float(layout.tp), ep=float(_dense_ep(layout, model))).check(model)
    except ScenarioError as error:
        yield Broken("tp", error.message, error.hint)
    ranks = layout.tp * layout.cp
    if layout.context_exchange == "all-to-all" and layout.cp > 1 and model.num_heads % ranks:
        yield Broken(
            "cp",
            f"all-to-all gives each chip whole heads, but {model.num_heads} heads do not divide by "
            f"tp {layout.tp} × cp {layout.cp} = {ranks}",
            f"{option('context_exchange', 'ring')} has no such limit",
        )


def _dense_ep(layout: Layout, model: Model) -> int:
    """An ep under which the rules of experts hold, so that only those of tp are left; experts have their own rules."""
    return 1 if model.moe is None else gcd(layout.tp, model.moe.num_experts)


def _experts(layout: Layout, model: Model) -> Iterator[Broken]:
    named = model.title or model.name
    if model.moe is None:
        for name in ("ep", "etp"):
            if (value := getattr(layout, name)) > 1:
                yield Broken("", f"{name} is {value}, but {named} has no experts", option(name, 1), name)
        return
    chips = layout.tp * layout.cp * layout.dp
    if model.moe.num_experts % layout.ep:
        yield _indivisible("ep", layout.ep, "experts", model.moe.num_experts)
    elif chips % layout.ep:
        yield _indivisible("ep", layout.ep, "chips of a stage", chips)
    elif layout.etp:
        ways = layout.ep * layout.etp
        if chips % ways:
            yield Broken(
                "etp",
                f"ep {layout.ep} × etp {layout.etp} = {ways} does not divide {counted(chips, 'chip')} of a stage "
                f"(tp {layout.tp} × cp {layout.cp} × dp {layout.dp})",
            )
        if model.moe.expert_ffn % layout.etp:
            yield _indivisible("etp", layout.etp, "columns of an expert", model.moe.expert_ffn)
    else:
        low, high = sorted((layout.tp, layout.ep))
        if high % low:
            yield Broken("ep", f"ep {layout.ep} neither divides tp {layout.tp} nor is a multiple of it")
        elif model.moe.expert_ffn % max(layout.tp // layout.ep, 1):
            yield _indivisible("tp", layout.tp // layout.ep, "columns of an expert", model.moe.expert_ffn)


def _stages(layout: Layout, model: Model) -> Iterator[Broken]:
    named, layers = model.title or model.name, model.num_layers
    stages = layout.pp * layout.vpp
    most = layers + 2  # embedding and head may take a place: Llama 3 put 126 layers on 16 × 8
    if stages > most:
        yield Broken(
            "",
            f"{counted(layout.pp, 'stage')} of {counted(layout.vpp, 'chunk')} are {stages}, but {named} has "
            f"{counted(layers, 'layer')}",
            f"{option('pp')} times {option('vpp')} of at most {most}",
            "vpp" if layout.vpp > 1 else "pp",
        )
    if layout.pp > layers:
        yield Broken(
            "pp",
            f"pp {layout.pp} leaves {counted(layout.pp - layers, 'stage')} without a layer",
            f"at most {option('pp', layers)}",
        )
    if layout.vpp > 1 and layout.pp == 1:
        yield Broken(
            "",
            f"vpp is {layout.vpp}, but one stage has nothing to interleave",
            f"{option('vpp', 1)}, or {option('pp', 2)} and more",
            "vpp",
        )
    if layout.split:
        yield from _cut(layout, layers, named)
    elif ceil(layers / layout.pp) % layout.vpp:
        yield _indivisible("vpp", layout.vpp, "layers of a stage", ceil(layers / layout.pp))


def _cut(layout: Layout, layers: int, named: str) -> Iterator[Broken]:
    """A cut by hand: as many numbers as stages, or as chunks, that add up to the layers."""
    split, stages = layout.split, layout.pp * layout.vpp
    if len(split) not in (layout.pp, stages):
        either = f"{layout.pp}" if layout.vpp == 1 else f"{layout.pp} (stages) or {stages} (chunks)"
        yield Broken(
            "",
            f"the split names {counted(len(split), 'stage')}, but pp {layout.pp} × vpp {layout.vpp}",
            f"{either} numbers",
            "split",
        )
        return
    if min(split) < 0:
        yield Broken("", f"the split holds {min(split)}; a stage has no fewer than 0 layers", blamed="split")
    if (total := sum(split)) != layers:
        rest = layers - total
        largest = max(range(len(split)), key=lambda at: split[at])
        mended = [*split[:largest], split[largest] + rest, *split[largest + 1 :]]
        hint = (
            f"e.g. {' '.join(map(str, mended))}" if min(mended) >= 0 else f"numbers that add up to {layers}"
        )
        yield Broken(
            "", f"the split adds up to {counted(total, 'layer')}, but {named} has {layers}", hint, "split"
        )
    if len(split) == layout.pp and layout.vpp > 1:
        for stage, count in enumerate(split):
            if count % layout.vpp:
                near = f"{count - count % layout.vpp} or {count + layout.vpp - count % layout.vpp}"
                yield Broken(
                    "",
                    f"stage {stage} has {count} layers, which do not divide into {layout.vpp} chunks",
                    f"nearest: {near}; or name all {stages} chunks",
                    "split",
                )
                return


def _replicas(layout: Layout) -> Iterator[Broken]:
    if layout.shard and layout.dp % layout.shard:
        yield _indivisible("shard", layout.shard, "data-parallel ranks", layout.dp)
    if layout.shard and layout.shard < layout.dp and layout.zero == 0:
        yield Broken(
            "",
            f"shard is {layout.shard}, but zero 0 shares nothing",
            f"{option('zero', 1)}, 2 or 3; or {option('shard', 0)}",
            "shard",
        )
    if layout.compression in FEEDING_BACK and layout.zero >= 2:
        yield Broken(
            "",
            f"{layout.compression} compression keeps its error on every rank, "
            f"but zero {layout.zero} spreads the gradients",
            f"{option('zero', 0)} or 1; or {option('compress', 'bf16')} or fp8",
            "compress",
        )


def _batches(layout: Layout, global_batch: int) -> Iterator[Broken]:
    if not global_batch:  # any that divides
        return
    ranks = layout.dp * layout.micro_batch
    if global_batch % ranks:
        below = global_batch - global_batch % ranks
        values = (below, below + ranks) if below else (ranks,)
        near = " or ".join(option("global_batch", value) for value in values)
        yield Broken(
            "micro_batch",
            f"dp · micro_batch {ranks} does not divide {global_batch:,} sequences of the global batch",
            f"nearest: {near}",
            "global_batch",
        )
        return
    num_micro = layout.num_micro(global_batch)
    if num_micro > MOST_MICRO:
        yield Broken(
            "micro_batch",
            f"{num_micro:,} micro-batches in a step are more than {MOST_MICRO:,}",
            f"a larger {option('micro_batch')} or {option('dp')}",
            "global_batch",
        )
    if layout.vpp > 1 and num_micro % layout.pp:
        yield Broken(
            "",
            f"interleaved stages need micro-batches in multiples of pp {layout.pp}; there are {num_micro}",
            f"{option('vpp', 1)}, or a {option('global_batch')} that divides by {ranks * layout.pp}",
            "global_batch",
        )


def _indivisible(name: str, value: int, what: str, total: int) -> Broken:
    return Broken(name, f"{option(name, value)} does not divide {total:,} {what}")


def _advice(broken: Broken, layout: Layout, model: Model, num_chips: int, global_batch: int) -> str:
    """The nearest legal values of the field that broke a rule, each tried with all rules."""
    if broken.field == "chips":
        return _chips_advice(layout, model, num_chips, global_batch)
    if not broken.field:
        return broken.hint
    near = nearest_legal(layout, broken.field, model, num_chips, global_batch)
    also = broken.hint
    if not near and broken.field != "micro_batch":
        near = nearest_legal(layout, broken.field, model, num_chips, 0)
        also = f"with a {option('global_batch')} that divides by dp · micro_batch"
    if not near:
        return broken.hint or f"no {option(broken.field)} is legal with the rest of the layout"
    text = f"nearest: {' or '.join(option(broken.field, value) for value in near)}"
    return f"{text}; {also}" if also else text


def _chips_advice(layout: Layout, model: Model, num_chips: int, global_batch: int) -> str:
    group = layout.tp * layout.pp * layout.cp
    if num_chips % group == 0:
        near = nearest_legal(layout, "dp", model, num_chips, global_batch)
        if near:
            return f"{option('dp', near[0])} would fit"
    said = [
        f"{option(name, value)} with {option('dp', num_chips * getattr(layout, name) // (group * value))}"
        for name in ("tp", "pp", "cp")
        for value in nearest_legal(layout, name, model, num_chips, global_batch)
    ]
    if said:
        return f"nearest: {' or '.join(said)}"
    chips = counted(num_chips, "chip")
    return f"no change of one degree makes this {chips}; plan train without a layout lists what does"


def nearest_legal(
    layout: Layout, field: str, model: Model, num_chips: int, global_batch: int
) -> tuple[int, ...]:
    """The legal values next below and next above that of a field, data parallelism over the chips left.

    A global batch of 0 stands for any that divides.
    """
    here = getattr(layout, field)
    bounds = {"micro_batch": global_batch or MOST_TRIED, "vpp": model.num_layers}
    most = min(MOST_TRIED, bounds.get(field, num_chips))
    below = (value for value in range(min(here, most), 0, -1) if value != here)
    above = range(here + 1, most + 1)
    found = []
    for values in (below, above):
        legal = (value for value in values if _legal(layout, field, value, model, num_chips, global_batch))
        if (one := next(legal, None)) is not None:
            found.append(one)
    return tuple(found)


def _legal(layout: Layout, field: str, value: int, model: Model, num_chips: int, global_batch: int) -> bool:
    changed = msgspec.structs.replace(layout, **{field: value})
    if field in ("tp", "pp", "cp"):
        group = changed.tp * changed.pp * changed.cp
        if num_chips % group:
            return False
        changed = msgspec.structs.replace(changed, dp=num_chips // group)
    return changed.is_legal(model, num_chips, global_batch)
