"""What `breakdown.py` computes from parts is what it was: see `record.py`."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from functools import partial

import msgspec
from tests.recorded.record import check_calls, or_refused

from datahall.breakdown import (
    Band,
    Breakdown,
    Source,
    assumed,
    ceiling,
    chosen,
    derived,
    difference,
    evaluate,
    fact,
    false_nodes,
    fitted,
    floor,
    given,
    maximum,
    minimum,
    modelled,
    overlap,
    power,
    product,
    quotient,
    simulated,
    total,
)

LAB = Source("lab", "2026-11", "measured")
WHOLE = (3.0, 3.0 + 1e-10, 3.0 - 1e-10, 3.0 + 1e-8, 2.0 - 1e-8, 0.5, 0.0, -1.5)


def leaf(draw: random.Random, value: float | None = None) -> Breakdown:
    """A figure without parts, of some origin, with a band or without."""
    size = draw.choice((0.25, 1.0, 3.0, 40.0)) if value is None else value
    made: list[Callable[[], Breakdown]] = [
        lambda: fact("fact", size, "s", LAB), lambda: given("given", size, "s", field="tp"),
        lambda: fitted("fitted", size, "s", "rows", LAB), lambda: assumed("assumed", size, "s", "why"),
        lambda: derived("derived", size, "s"), lambda: chosen("chosen", size, "s", "why"),
        lambda: modelled("modelled", size, "s", "by", given("a", 2.0, "s")),
        lambda: simulated("simulated", size, "s", "how", given("b", 2.0, "s")),
    ]  # fmt: skip
    found = draw.choice(made)()
    if draw.random() < 0.5:
        return found.with_band(
            draw.choice((0.5, 0.9)), draw.choice((1.1, 2.0)), "rows", floor=draw.choice((-1.0, 0.8 * size))
        )
    return found


def joined(draw: random.Random) -> Iterator[tuple[str, Callable[[], Breakdown]]]:
    """One figure of each operation."""
    one, other, third = leaf(draw), leaf(draw), leaf(draw)
    near = leaf(draw, draw.choice(WHOLE))
    degree = leaf(draw, draw.choice((1.0, 2.0, 4.0)))
    parts = [one, other, third]
    yield "total", partial(total, "x", parts)
    yield "difference", partial(difference, "x", one, other, third)
    yield "product", partial(product, "x", parts, "s")
    yield "quotient", partial(quotient, "x", one, other, "s")
    yield "ceiling", partial(ceiling, "x", near)
    yield "floor", partial(floor, "x", near)
    yield "maximum", partial(maximum, "x", parts)
    yield "minimum", partial(minimum, "x", parts)
    yield "overlap", partial(overlap, "x", one, other, degree)
    yield "power", partial(power, "x", one, degree, "s")


def calls() -> Iterator[tuple[str, object]]:
    for seed in range(12):
        draw = random.Random(seed)
        for name, make in joined(draw):
            found = or_refused(make)
            yield f"{seed} {name}", told(found) if isinstance(found, Breakdown) else found
            if isinstance(found, Breakdown):
                yield f"{seed} {name} moved", list(moved(found))


def told(figure: Breakdown) -> list[object]:
    return [
        figure, figure.shown, figure.formula, evaluate(figure), false_nodes(figure), figure.citations(),
        [depth for depth, _ in figure.walk()], total("of it", [figure, figure]), figure.with_note("n"),
        figure.named("y"),
    ]  # fmt: skip


def moved(figure: Breakdown) -> Iterator[object]:
    """What is said of figures that are not what follows from their parts, by a little and by more."""
    for ratio in (1 + 1e-12, 1 + 5e-10, 1 + 2e-9, 1.01):
        yield len(false_nodes(msgspec.structs.replace(figure, value=figure.value * ratio)))
        band = figure.band or Band(figure.value, figure.value)
        yield len(false_nodes(msgspec.structs.replace(figure, band=Band(band.low * ratio, band.high))))
        yield len(false_nodes(msgspec.structs.replace(figure, band=Band(band.low, band.high * ratio))))
    yield len(false_nodes(msgspec.structs.replace(figure, origin="fact")))


def test_figures_of_calls(update: bool) -> None:
    check_calls("breakdown", calls(), update)
