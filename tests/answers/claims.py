"""What an answer says, held against what it rests on: its headline, its results and the leaves of its figure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from math import isclose, isfinite
from typing import NamedTuple

from datahall.answer import Answer, Cell, Quantity
from datahall.answers.ask import form_of
from datahall.breakdown import SAME, Breakdown, false_nodes
from datahall.catalog import Catalog
from datahall.report.cell import asked
from datahall.scenario.field import Field
from datahall.scenario.kinds import Count, Share
from datahall.training.layout.file import read_layout
from datahall.training.leaf import DEGREES
from datahall.units import fmt, unit_of

NUMBER = re.compile(r"\d+(?:,\d{3})*(?:\.\d+)?")
# a number of a sentence with the unit that stands behind it
SAID = re.compile(
    rf"({NUMBER.pattern})"
    r"((?: ?[kMGTPE]?(?:B/s|FLOP/s|FLOP|B|W)| (?:ns|µs|ms|s|min|h|days|bytes)| ?%|×)(?![\w/]))?"
)
SHAPE = re.compile(
    r"\d{4}-\d\d(?:-\d\d)?|of \d+ ports|\b\d+(?:[x×]\d+)+ |\d+-(?:ary|bit|port|tier)|stages \d+–\d+|P\d+|dh-[\w-]+"
)  # a day; of a switch, a torus, a tree, a format; stages that are alike; a percentile; a secret: no figures
_THINGS = "chip|replica|request|token|layer|user|switche|cable|step|day|price|problem|row|stage|time"
GARBLED = re.compile(rf"\d[eE][+-]\d+|\b(?:inf|nan)\b|\bNone\b|(?<![\d.,])1 (?:{_THINGS})s\b(?!/)")
KEY = re.compile(r"[A-Za-z0-9_]+")
DIGITS = (2, 3, 4)  # that a sentence shows of a number
WITH_UNIT = {"s", "bytes", "bytes_per_s", "flop", "flop_per_s", "fraction", "w"}  # never said bare

# the input that a leaf names, where it does not have the name of the input
CALLED = {name: (field,) for name, field in DEGREES.items()} | {
    "rank of the adapters": ("lora",),
    "PUE": ("pue",),
    "a spot node stays": ("preempted_every",),
    "network": ("network_overhead",),
    "price of a chip, all in": ("capex",),
    "price of energy": ("energy_price",),
    "rent of space": ("colo",),
    "repair": ("repair_cost",),
    "share in batches": ("batched",),
    "share in its cache": ("cached",),
    "share of hours used": ("used",),
    "stop for a checkpoint": ("blocking",),
    "storage": ("storage_overhead",),
    "TPOT limit": ("tpot",),
    "TTFT limit": ("ttft",),
    "a planned stop": ("planned",),
    "array": ("size",),
    "beside the text of an answer": ("sent",),
    "between planned stops": ("planned_every",),
    "batches ready ahead": ("prefetch_depth",),
    "chips that share it": ("tp",),
    "context, graphs and buffers": ("reserved",),
    "experts of a token": ("topk",),
    "failures of a node per day": ("failure_rate",),
    "network of a chip, one way": ("nic",),
    "of a sequence": ("host_sequence",),
    "of a step": ("host_step",),
    "offered": ("rate",),
    "ranks": ("chips",),
    "replicas": ("replicas", "dp"),
    "resident adapters": ("resident_adapters", "adapters"),  # all of them, where fewer are not asked for
    "sequence": ("seq",),
    "sequences": ("batch",),
    "share of the time": ("spares_enough",),
    "storage over servers": ("storage_share",),
    "the engine's share": ("memory_fraction",),
    "think time": ("think",),
    "tokens": ("tokens", "context"),
    "tokens of a sequence": ("seq", "context"),
    "tokens of an answer": ("osl",),
    "until they serve again": ("restart",),
    "what a site sends": ("wan",),
    "steps between two exchanges": ("local_steps",),
    "values of a token": ("hidden",),
}


class Derived(NamedTuple):
    """A number that a headline says and that follows from inputs and results by a rule of its own."""

    what: str
    unit: str
    of: Callable[[Mapping[str, float]], float]


CHIP_MEMORY = Derived("memory of a chip", "bytes", lambda of: of["memory_bytes"] + of["headroom_bytes"])
DERIVED: dict[str, tuple[Derived, ...]] = {
    "plan serve": (
        Derived("tokens/s that a user reads", "tokens_per_s", lambda of: 1 / of["tpot_s"]),
        Derived(
            "load beyond what is asked for",
            "fraction",
            lambda of: of["headroom_fraction"] / (1 - of["headroom_fraction"]),
        ),
        Derived("the same as a multiple", "ratio", lambda of: 1 / (1 - of["headroom_fraction"])),
    ),
    "plan train": (
        CHIP_MEMORY,
        Derived("time to spare", "s", lambda of: of["deadline_s"] - of["done_s"]),
    ),
    "show collective": (Derived("the other chips", "count", lambda of: of["chips"] - 1),),
    "simulate train": (CHIP_MEMORY,),
    "show training-techniques": (CHIP_MEMORY,),
    "show power": (
        Derived("what the ramp allows in a minute", "w", lambda of: 60 * of["ramp_limit_w_per_s"]),
        Derived("above its limit", "fraction", lambda of: of["peak_w"] / of["site_limit_w"] - 1),
        Derived("swing above its limit", "fraction", lambda of: of["swing_w"] / of["swing_limit_w"] - 1),
    ),
    "show memory": (Derived("times what it has", "ratio", lambda of: of["total_bytes"] / of["limit_bytes"]),),
}


def unfounded(answer: Answer) -> list[str]:
    """Everything in an answer that does not follow from what is under it."""
    return [
        *_of_the_inputs(answer),
        *_of_the_figure(answer),
        *_of_the_results(answer),
        *_of_the_headline(answer),
        *(f"{key} is no key for a script" for key in answer.results if not KEY.fullmatch(key)),
    ]


def garbled(text: str) -> list[str]:
    """What no sentence, table or chain says: numbers as a computer writes them, one of several, not a number."""
    return GARBLED.findall(text)


def _of_the_inputs(answer: Answer) -> Iterator[str]:
    """Each count that the question says stands among the inputs, as it was said; no two have one name."""
    names = Counter(name for usual in (False, True) for name, _ in asked(answer, by_default=usual))
    yield from (f"two inputs are called {name}" for name, times in names.items() if times > 1)
    question = answer.question
    for field in form_of(str(question["ask"])).fields.values():
        if not isinstance(field.kind, Count):
            continue  # a percentile of 50 is a share of 0.5
        table = question.get(field.section, {}) if field.section else question
        said = table.get(field.key) if isinstance(table, dict) else None
        if isinstance(said, bool) or not isinstance(said, int | float):
            continue
        seen = answer.inputs.get(field.attribute)
        if not _is(seen, float(said)):
            yield f"{field.name} was said to be {said}, and the inputs have {seen}"


def _of_the_figure(answer: Answer) -> Iterator[str]:
    for figure in answer.figures:
        yield from false_nodes(figure)
    for _, leaf in (node for figure in answer.figures for node in figure.walk()):
        if leaf.origin == "input" and not _is_the_input(leaf, answer):
            yield f"{leaf} is said to be an input of the question, which has none of that name and value"


def _is_the_input(leaf: Breakdown, answer: Answer) -> bool:
    """Whether a leaf is what the input of its name was given, or is in the file of a layout, or if nobody says."""
    fields = form_of(str(answer.question["ask"])).fields
    own = re.sub(r"\W+", "_", leaf.name)
    for name in CALLED.get(leaf.name, (own,)):
        field = fields.get(name)
        if field is not None and any(
            isclose(leaf.value, value, rel_tol=SAME) for value in _values(field, answer)
        ):
            return True
    return False


def _values(field: Field, answer: Answer) -> Iterator[float]:
    """What an input is: as it was given; if it was not, as declared or as its help says."""
    given = answer.inputs.get(field.attribute, field.default)
    if isinstance(given, int | float):
        yield float(given)
    if field.attribute not in answer.inputs:
        yield from _in_the_file(field, answer)
        stated = field.kind.help.partition("default")[2]
        yield from (float(text.replace(",", "")) for text in NUMBER.findall(stated))


def _in_the_file(field: Field, answer: Answer) -> Iterator[float]:
    """What the layout file of a question says of an input."""
    path = answer.inputs.get("file")
    if not isinstance(path, str):
        return
    file = read_layout(path)
    for one in (file.layout, file):
        value = getattr(one, field.attribute, None)
        if isinstance(value, int) and (field.attribute != "dp" or file.states_dp):
            yield float(value)


def _of_the_results(answer: Answer) -> Iterator[str]:
    """A result that is the figure, or a part of it, has its band beside it, and each is what the figure says."""
    if answer.figure is None:
        return
    figure, found = answer.figure, answer.results
    yield from _of_the_bands(figure, found)
    same = [key for key, value in found.items() if _is(value, figure.value)]
    for key in same:
        value = found[key]
        if (
            isinstance(value, Quantity)
            and figure.band
            and not (_is(value.low, figure.band.low) and _is(value.high, figure.band.high))
        ):
            yield f"the band of {key} is not that of {figure}"
    if not same and not _shown_in(answer.headline + answer.binding, figure.value, figure.unit):
        yield f"{figure} stands neither in the results nor in a sentence"


def _of_the_bands(figure: Breakdown, found: dict[str, Cell]) -> Iterator[str]:
    """Ends that stand beside a result are those of the part of the figure that the result is."""
    for depth, node in figure.walk():
        if node.band is None:
            continue
        for key, value in found.items():
            if not _is(value, node.value) or (depth and unit_of(key) != node.unit):
                continue
            stem, low, high = _ends(key, found)
            if (low in found or high in found) and not (
                _is(found[low], node.band.low) and _is(found[high], node.band.high)
            ):
                yield f"the band of {stem} is not that of {node}"


def _of_the_headline(answer: Answer) -> Iterator[str]:
    known = {text for value, unit in _all_numbers(answer) for text in _ways_to_say(value, unit)}
    for number, unit in SAID.findall(SHAPE.sub("", _without_names(_without_notes(answer)))):
        if number + unit not in known:
            yield f'"{number}{unit}" of the headline stands nowhere else'


def _without_notes(answer: Answer) -> str:
    """The headline without what it quotes of a fact: the note that the catalogue has on it."""
    facts = [node for figure in answer.figures for _, node in figure.walk() if node.origin == "fact"]
    text = answer.headline
    for note in {node.note for node in facts if node.note}:
        text = text.replace(note, "…")
    return text


def _ends(key: str, found: dict[str, Cell]) -> tuple[str, str, str]:
    """The keys of the ends of a band beside the key of its value: pass_s, pass_low_s; num_chips, num_chips_low."""
    stem, _, unit = key.rpartition("_")
    inner = (f"{stem}_low_{unit}", f"{stem}_high_{unit}")
    return (key, *inner) if inner[0] in found else (key, f"{key}_low", f"{key}_high")


def _is(value: Cell, other: float) -> bool:
    number = value.value if isinstance(value, Quantity) else value
    return isinstance(number, int | float) and isclose(number, other, rel_tol=SAME)


def _shown_in(text: str, value: float, unit: str) -> bool:
    return any(fmt(value, unit, digits) in text for digits in DIGITS)


def _ways_to_say(value: float, unit: str) -> Iterator[str]:
    """A number with its unit; one whose unit is a word of the sentence (12 requests, 12 tokens/s) without it."""
    if not isfinite(value):
        return
    for digits in DIGITS:
        yield "".join(next(iter(SAID.findall(fmt(abs(value), unit, digits)))))
    if unit == "ratio":
        yield from (f"{abs(value):.2f}×", f"{abs(value):.2f}")
    if unit == "fraction":
        yield from (f"{abs(value) * 100:.{places}f} %" for places in (0, 1))
    elif unit == "bytes":
        yield f"{abs(value):,.0f} bytes"
    elif unit not in WITH_UNIT:
        yield from (f"{abs(value):,.0f}", f"{abs(value):.0f}", f"{abs(value):.3g}")
        yield from (NUMBER.findall(fmt(abs(value), unit, digits))[0] for digits in DIGITS)


def _numbers(cells: dict[str, Cell]) -> Iterator[tuple[float, str]]:
    for key, value in cells.items():
        yield from _in_cell(value, "parameters" if key.endswith("parameters") else unit_of(key))


def _in_cell(value: Cell, unit: str) -> Iterator[tuple[float, str]]:
    if isinstance(value, Quantity):
        yield from ((one, value.unit) for one in (value.value, value.low, value.high) if one is not None)
    elif isinstance(value, str):
        yield from ((float(text.replace(",", "")), "") for text in NUMBER.findall(value))
    elif value is not None and not isinstance(value, bool):
        yield float(value), unit


def _all_numbers(answer: Answer) -> Iterator[tuple[float, str]]:
    """Every number that a headline may say: an input, a result, a figure of the chain or an end of its band, what
    is declared to follow from them, and the percentile that a result is of."""
    verb = str(answer.question["ask"])
    yield from _numbers(answer.inputs)
    yield from _shares(answer, verb)
    yield from _numbers(answer.results)
    yield from (
        (int(text) / 100, "fraction") for key in answer.results for text in re.findall(r"_p(\d+)_", key)
    )
    if answer.figure is not None:
        for _, node in answer.figure.walk():
            yield node.value, node.unit
            if node.band is not None:
                yield from ((node.band.low, node.unit), (node.band.high, node.unit))
    plain = {
        key: float(value)
        for key, value in {**answer.results, **answer.inputs}.items()
        if isinstance(value, int | float)
    }
    yield from ((rule.of(plain), rule.unit) for rule in DERIVED.get(verb, ()) if _can(rule, plain))


def _shares(answer: Answer, verb: str) -> Iterator[tuple[float, str]]:
    """Inputs that are shares and do not say so in their names: a percentile."""
    for field in form_of(verb).fields.values():
        value = answer.inputs.get(field.attribute)
        if isinstance(field.kind, Share) and isinstance(value, float):
            yield value, "fraction"


def _can(rule: Derived, of: Mapping[str, float]) -> bool:
    try:
        rule.of(of)
    except (KeyError, ZeroDivisionError):
        return False
    return True


@cache
def _names() -> tuple[str, ...]:
    catalog = Catalog(user=False)
    entries = (*catalog.chips(), *catalog.models())
    return tuple(
        sorted({name for one in entries for name in (one.name, one.title) if name}, key=len, reverse=True)
    )


def _without_names(text: str) -> str:
    for name in _names():
        text = text.replace(name, "…")
    return re.sub(
        r"\b[a-zA-Z]+\d+\w*\b|\S+/\S+/\S+", "…", text
    )  # formats and kinds of memory: bf16, HBM3; paths
