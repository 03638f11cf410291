"""Lengths of prompts and answers as a person says them: a number of tokens, or a table with a shape.

1000, "8k", or { shape = "lognormal", mean = 1000, p95 = 3000 }, on a command line "shape=lognormal,mean=1000,p95=3000".
"""

from pathlib import Path

from datahall.errors import ScenarioError
from datahall.scenario.kinds import (
    Count,
    Kind,
    Listed,
    Plain,
    Quantity,
    Raw,
    Reading,
    Share,
    Text,
    inline_table,
    listed,
    unknown_name,
)
from datahall.workload.traffic.shapes import (
    LONGEST_TOKENS,
    Empirical,
    Fixed,
    Lengths,
    Lognormal,
    Quantiles,
    Uniform,
    check_lengths,
)

LONGEST = int(LONGEST_TOKENS) - 1
TOKENS = Count("Tokens.", unit="tokens", most=LONGEST)
MEAN = Quantity("Tokens.", unit="tokens", least=1.0, most=LONGEST)
SHAPES: dict[str, dict[str, Kind]] = {
    "fixed": {"tokens": TOKENS},
    "uniform": {"low": TOKENS, "high": TOKENS},
    "lognormal": {
        "mean": MEAN,
        "variation": Quantity("Standard deviation over the mean.", unit="ratio"),
        "median": MEAN,
        "p95": MEAN,
    },
    "quantiles": {"quantiles": Text("")},
    "empirical": {"tokens": Listed("", of=TOKENS), "file": Text("")},
}


class LengthsKind(Kind, frozen=True):
    """A number of tokens, or a table with a shape."""

    def read(self, raw: Raw, at: Reading) -> Lengths:
        if isinstance(raw, str) and ("=" in raw or raw.strip().startswith("{")):
            raw = inline_table(raw)
        lengths = _shaped(raw, at) if isinstance(raw, dict) else Fixed(TOKENS.read(raw, at))
        try:
            check_lengths(lengths, "lengths")
        except ScenarioError as error:
            error.where = ""  # the input, as its border spells it
            raise
        return lengths

    def write(self, value: object) -> Plain:
        match value:
            case Fixed(tokens):
                return tokens
            case Uniform(low, high):
                return {"shape": "uniform", "low": low, "high": high}
            case Lognormal(mean, variation):
                return {"shape": "lognormal", "mean": mean, "variation": variation}
            case Quantiles(points):
                return {"shape": "quantiles", "quantiles": [list(point) for point in points]}
            case Empirical(tokens):
                return {"shape": "empirical", "tokens": list(tokens)}
        raise AssertionError(value)

    def annotation(self, *also: str) -> str:
        del also
        return "str | int | Mapping[str, Any]"

    def schema(self) -> dict[str, object]:
        return {"anyOf": [{"type": "integer"}, {"type": "string"}, {"type": "object", "required": ["shape"]}]}

    def placeholder(self, attribute: str) -> str:
        del attribute
        return self.metavar or "TOKENS"


def _shaped(raw: dict[str, Raw], at: Reading) -> Lengths:
    shape = raw.get("shape")
    if not isinstance(shape, str):
        raise ScenarioError("a table of lengths without a shape", hint=f"shape = one of {', '.join(SHAPES)}")
    if shape not in SHAPES:
        raise unknown_name("shape", shape, SHAPES)
    kinds = SHAPES[shape]
    unknown = [key for key in raw if key != "shape" and key not in kinds]
    if unknown:
        raise ScenarioError(f'a {shape} length has no "{unknown[0]}"', hint=f"it has {', '.join(kinds)}")
    if shape == "quantiles":
        return _quantiles(raw.get("quantiles"), at)
    if shape == "empirical":
        return _empirical(raw, at)
    values = {key: kind.read(raw[key], at) for key, kind in kinds.items() if key in raw}
    if shape == "lognormal":
        return _lognormal(values)
    missing = [key for key in kinds if key not in values]
    if missing:
        raise ScenarioError(f"a {shape} length without {missing[0]}", hint=f"it has {', '.join(kinds)}")
    low, high = (int(str(values[key])) for key in (list(kinds) * 2)[:2])
    return Fixed(low) if shape == "fixed" else Uniform(low, high)


def _lognormal(values: dict[str, object]) -> Lengths:
    mean = values.pop("mean", None)
    if not isinstance(mean, float) or len(values) != 1:
        said = " and ".join(values) or "a mean alone"
        raise ScenarioError(f"a lognormal with {said}", hint="a mean, and one of variation, median, p95")
    from datahall.workload.traffic.lengths import lognormal_median, lognormal_p95

    ((name, value),) = values.items()
    assert isinstance(value, float)
    if name == "median":
        return lognormal_median(mean, value)
    return lognormal_p95(mean, value) if name == "p95" else Lognormal(mean, value)


def _quantiles(raw: Raw, at: Reading) -> Lengths:
    points = []
    for pair in raw if isinstance(raw, list | tuple) else [raw]:
        if not isinstance(pair, list | tuple) or len(pair) != 2:
            raise ScenarioError(f"{pair!r} is not a percentile", hint='pairs such as ["50 %", "1k tokens"]')
        points.append((Share("").read(pair[0], at), MEAN.read(pair[1], at)))
    return Quantiles(tuple(points))


def _empirical(raw: dict[str, Raw], at: Reading) -> Lengths:
    tokens, file = raw.get("tokens"), raw.get("file")
    if (tokens is None) == (file is None):
        raise ScenarioError(
            "lengths that were seen stand in one place", hint='tokens = [512, 900], or file = "…"'
        )
    if tokens is not None:
        return Empirical(tuple(TOKENS.read(one, at) for one in listed(tokens)))
    from datahall.workload.traffic.lengths import lengths_file

    path = Path(str(file))
    return lengths_file(path if at.folder is None else at.folder / path)
