"""Lengths of prompts and answers as a scenario writes them."""

from __future__ import annotations

from pathlib import Path

from datahall.catalog.document import Value
from datahall.inference.scenario_file import (
    Elsewhere,
    Place,
    Read,
    Rule,
    ServingReader,
    TokenRule,
    number,
    whole,
)
from datahall.workload.traffic.lengths import (
    Empirical,
    Fixed,
    Lengths,
    Lognormal,
    Quantiles,
    Uniform,
    check_lengths,
    lengths_file,
    lognormal_median,
    lognormal_p95,
    mean_tokens,
)

TOKENS = TokenRule("count", least=1)
SHAPES: dict[str, dict[str, Rule]] = {
    "fixed": {"tokens": TokenRule("count", least=1, required=True)},
    "uniform": {
        "low": TokenRule("count", least=1, required=True),
        "high": TokenRule("count", least=1, required=True),
    },
    "lognormal": {
        "mean": TokenRule("ratio", least=1, required=True),
        "variation": Rule("ratio"),
        "median": TokenRule("ratio", least=1),
        "p95": TokenRule("ratio", least=1),
    },
    "quantiles": {"quantiles": Elsewhere("text", required=True)},
    "empirical": {"tokens": Elsewhere("text"), "file": Rule("text", "")},
}
SHAPE = Rule("text", "fixed", tuple(SHAPES), required=True)


def read_lengths(
    reader: ServingReader, place: Place, raw: Value | None, default: Lengths, spread: Read
) -> Lengths | None:
    """A number of tokens, or a table with a shape; `spread` makes a number, or the default, lognormal."""
    if isinstance(raw, dict):
        if spread is not None:
            reader.problem(
                place, "a shape and a spread", "the shape says how lengths spread; leave spread out"
            )
        return _shaped(reader, place, raw)
    if raw is None and spread is None:
        return default
    mean = mean_tokens(default) if raw is None else reader.quantity(place, raw, TOKENS)
    if mean is None:
        return None
    lengths: Lengths = Lognormal(mean, number(spread)) if spread else Fixed(round(mean))
    return _checked(reader, place, lengths)


def _shaped(reader: ServingReader, place: Place, raw: dict[str, Value]) -> Lengths | None:
    shape = raw.get("shape")
    if not isinstance(shape, str) or shape not in SHAPES:
        reader.table(
            place, {"shape": shape} if "shape" in raw and shape is not None else {}, {"shape": SHAPE}
        )
        return None
    num_before = len(reader.problems)
    values = reader.table(place, raw, {"shape": SHAPE, **SHAPES[shape]})
    if len(reader.problems) > num_before:
        return None
    lengths: Lengths | None
    if shape == "fixed":
        lengths = Fixed(whole(values["tokens"]))
    elif shape == "uniform":
        lengths = Uniform(whole(values["low"]), whole(values["high"]))
    elif shape == "lognormal":
        lengths = _lognormal(reader, place, values)
    elif shape == "quantiles":
        lengths = _quantiles(reader, place, raw["quantiles"])
    else:
        lengths = _empirical(reader, place, raw)
    return None if lengths is None else _checked(reader, place, lengths)


def _checked(reader: ServingReader, place: Place, lengths: Lengths) -> Lengths | None:
    num_before = len(reader.problems)
    reader.attempt(place, lambda: check_lengths(lengths, place[-1]))
    return lengths if len(reader.problems) == num_before else None


def _lognormal(reader: ServingReader, place: Place, values: dict[str, Read]) -> Lengths | None:
    mean = number(values["mean"])
    said = {key: number(values[key]) for key in ("variation", "median", "p95") if values[key] is not None}
    if len(said) != 1:
        reader.problem(
            place,
            f"a lognormal with {' and '.join(said) if said else 'a mean alone'}",
            "say one of variation, median, p95",
        )
        return None
    if "median" in said:
        return reader.attempt(place, lambda: lognormal_median(mean, said["median"]))
    if "p95" in said:
        return reader.attempt(place, lambda: lognormal_p95(mean, said["p95"]))
    return Lognormal(mean, said["variation"])


def _quantiles(reader: ServingReader, place: Place, raw: Value) -> Lengths | None:
    points: list[tuple[float, float]] = []
    for pair in raw if isinstance(raw, list) else [raw]:
        if not isinstance(pair, list) or len(pair) != 2:
            reader.problem(place, f"{pair!r} is not a percentile", 'pairs such as ["50 %", "1k tokens"]')
            return None
        share = reader.quantity(place, pair[0], Rule("fraction"))
        tokens = reader.quantity(place, pair[1], TokenRule("ratio", least=1))
        if share is None or tokens is None:
            return None
        points.append((share, tokens))
    return Quantiles(tuple(points))


def _empirical(reader: ServingReader, place: Place, raw: dict[str, Value]) -> Lengths | None:
    tokens, file = raw.get("tokens"), raw.get("file")
    if (tokens is None) == (file is None) or not isinstance(tokens, list | None):
        reader.problem(
            place, "lengths that were seen stand in one place", 'tokens = [512, 900], or file = "…"'
        )
        return None
    if tokens is not None:
        found = [reader.quantity(place, one, TOKENS) for one in tokens]
        return None if None in found else Empirical(tuple(int(one) for one in found if one is not None))
    return reader.attempt(place, lambda: lengths_file(Path(reader.document.path).parent / str(file)))
