"""Numbers of serving answers: what a headline says stands in the results, and bands lie around what they belong to."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from random import Random

import msgspec
import pytest

import datahall as dh
from datahall.answer import Answer, Cell
from datahall.answers.ask import form_of
from datahall.answers.verbs import BY_NAME
from datahall.breakdown import Breakdown
from datahall.catalog import Catalog
from datahall.scenario.read import read_names

SHELF = Catalog(user=False)
SEED = 20261115
MODELS = ("llama-3.1-8b", "llama-3.1-70b", "qwen3-32b", "qwen3-30b-a3b", "gemma-3-27b")
CHIPS = ("h100-sxm", "h200-sxm", "b200-sxm", "mi300x", "l40s")
Given = dict[str, object]


def drawn(verb: str, random: Random) -> Given:
    """A question about some model, chip and load."""
    given: Given = {"model": random.choice(MODELS)}
    chip, rate = random.choice(CHIPS), random.choice([0.5, 3, 17])
    if verb == "show fit":
        context, batch = random.choice([2000, 9000, 30000]), random.choice([1, 5, 40])
        return given | {
            "chip": chip, "context": context, "batch": batch, "precision": random.choice(["bf16", "fp8-kv8"]),
            **({"tp": random.choice([1, 2, 4])} if random.random() < 0.5 else {}),
            **({"memory_fraction": 0.8, "reserved": 2e9} if random.random() < 0.3 else {}),
        }  # fmt: skip
    given |= {"isl": random.choice([300, 1500]), "osl": random.choice([40, 260])}
    given |= {"ttft": random.choice([1.0, 3.0]), "tpot": random.choice([0.03, 0.08])}
    if verb == "simulate serve":
        given |= {"chip": chip, "requests": random.choice([200, 600]), "seed": random.randrange(99)}
        return given | ({"users": 20} if random.random() < 0.3 else {"rate": rate})
    given |= {"chips": [chip, random.choice(CHIPS)], "percentile": random.choice([0.9, 0.95, 0.99])}
    given |= {"headroom": random.choice([0.0, 0.1, 0.25])}
    return given | ({"users": 150, "think": 20.0} if random.random() < 0.5 else {"rate": rate})


def questions() -> Iterator[tuple[str, Given]]:
    random = Random(SEED)
    for verb, count in (("plan serve", 5), ("simulate serve", 6), ("show fit", 8)):
        for _ in range(count):
            yield verb, drawn(verb, random)


QUESTIONS = list(questions())
each = pytest.mark.parametrize("place", range(len(QUESTIONS)), ids=lambda place: f"{QUESTIONS[place]}")


@cache
def answer(place: int) -> Answer:
    """Every question that is drawn has an answer: an error fails."""
    verb, given = QUESTIONS[place]
    found: Answer = getattr(dh, BY_NAME[verb].function)(**given, catalog=SHELF)
    return found


SCALES = {
    "µs": 1e-6,
    "ms": 1e-3,
    "s": 1.0,
    "min": 60.0,
    "%": 0.01,
    "kB": 1e3,
    "MB": 1e6,
    "GB": 1e9,
    "TB": 1e12,
}
NUMBER = re.compile(r"(?<![\w.-])(\d[\d,]*(?:\.\d+)?)(?: (µs|ms|s|min|%|kB|MB|GB|TB)(?![\w/]))?")


def numbers(headline: str, names: list[str]) -> Iterator[tuple[str, float, float]]:
    """Every number of a headline in SI, and how far rounding may have moved it; names of things are left out."""
    for name in sorted(names, key=len, reverse=True):
        headline = headline.replace(name, "–")
    for found in NUMBER.finditer(headline):
        scale = SCALES.get(found[2] or "", 1.0)
        decimals = len(found[1].partition(".")[2])
        yield found[0], float(found[1].replace(",", "")) * scale, 0.5 * 10**-decimals * scale


def known(found: Answer) -> list[float]:
    """Every number among the results and the inputs, and what is said of them in other words."""
    cells: list[Cell] = [*found.results.values(), *found.inputs.values()]
    values = [float(cell) for cell in cells if isinstance(cell, int | float)]
    inputs = found.inputs
    if found.kind == "serving plan":
        values.append(1 / float(inputs["tpot_s"]))  # type: ignore[arg-type]  # tokens per second that a user reads
        values.append(1 / (1 - float(inputs.get("headroom_fraction") or 0.0)) - 1)  # type: ignore[arg-type]
        values += [float(found.results[name] or 1) for name in ("tp", "pp", "dp", "ep")]  # type: ignore[arg-type]
        group = [float(found.results[name] or 1) for name in ("tp", "pp", "dp")]  # type: ignore[arg-type]
        values.append(group[0] * group[1] * group[2])
    if found.kind == "serving run":
        values.append(0.99)  # the percentile that it names
    if found.kind == "fit":
        values += [64.0]  # the largest group that is looked at
    return values


@each
def test_every_number_of_a_headline_stands_in_the_results(place: int) -> None:
    found = answer(place)
    titles = [name for one in (*SHELF.models(), *SHELF.chips()) for name in (one.title, one.name) if name]
    said = list(numbers(found.headline, [*titles, *("bf16", "fp8-kv8", "fp8", "w4a16", "nvfp4")]))
    assert said
    values = known(found)
    for text, value, rounding in said:
        near = [one for one in values if abs(one - value) <= rounding * (1 + 1e-6)]
        assert near, f"{text} of {found.headline!r}"


def banded(figure: Breakdown | None) -> Iterator[Breakdown]:
    for _, node in figure.walk() if figure is not None else ():
        if node.band is not None:
            yield node


@each
def test_a_band_lies_around_its_figure(place: int) -> None:
    for node in banded(answer(place).figure):
        assert node.band is not None
        assert node.band.low <= node.value <= node.band.high
        whole = any(part.operation in ("ceiling", "floor") for _, part in node.walk())
        if not whole:  # counts may round to their own band
            assert node.band.low < node.value < node.band.high, node.name
        assert node.band.low > 0


@each
def test_the_ends_of_a_band_in_the_results_are_those_of_figures(place: int) -> None:
    found = answer(place)
    ends = [name for name in found.results if re.search(r"_(low|high)(_s)?$", name)]
    for name in ends:
        key = re.sub(r"_(low|high)", "", name)
        value, end = found.results[key], found.results[name]
        assert (value is None) == (end is None)
        if isinstance(value, int | float) and isinstance(end, int | float):
            assert end <= value if "_low" in name else end >= value
            assert key.startswith("num_") or end != value
    figure = found.figure
    head = {"serving plan": "num_chips", "serving run": "tpot_mean_s"}.get(found.kind)
    if head and figure is not None and figure.band is not None:
        low, high = (re.sub(r"(_s)?$", rf"_{end}\1", head, count=1) for end in ("low", "high"))
        assert found.results[low] == figure.band.low
        assert found.results[high] == figure.band.high
        assert found.results[head] == pytest.approx(figure.value)
    assert found.kind != "serving run" or figure is None or len(ends) == 4
    assert found.kind != "serving plan" or len(ends) == 6


def stated(content: object) -> Iterator[float]:
    """Every number of a scenario in plain types."""
    if isinstance(content, dict | list):
        for inner in content.values() if isinstance(content, dict) else content:
            yield from stated(inner)
    elif isinstance(content, int | float):
        yield float(content)


@each
def test_an_input_leaf_is_an_input_of_the_question(place: int) -> None:
    """What a chain calls given is a field of the scenario, as it was said or by its declared default."""
    found = answer(place)
    verb, given = QUESTIONS[place]
    scenario = read_names(form_of(verb), given, SHELF, bare=True)  # type: ignore[arg-type]
    sections = [section for tables in scenario.sections.values() for section in tables]
    fields = set(stated(msgspec.to_builtins(sections)))
    assert found.figure is not None
    for _, node in found.figure.walk():
        if node.origin == "input":
            assert node.value in fields, f"{node.name} = {node.value}"
