"""`validate`: predict every measured row of a domain again and say how far off we are."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from importlib import resources
from pathlib import Path

from datahall.errors import UnknownNameError
from datahall.validation.collectives import FORMATS as COLLECTIVES
from datahall.validation.coverage import coverage_apart
from datahall.validation.inference import FORMATS as INFERENCE
from datahall.validation.inference.repeats import repeats
from datahall.validation.kernels import FORMATS as KERNELS
from datahall.validation.measurement import Format, Outcome, Row, format_of, read_rows
from datahall.validation.scorecard import Noise, Prediction, Scorecard, scorecard
from datahall.validation.training import FORMATS as TRAINING

DOMAINS: dict[str, tuple[Format, ...]] = {
    "kernels": KERNELS,
    "collectives": COLLECTIVES,
    "training": TRAINING,
    "inference": INFERENCE,
}

# domains whose measurements were repeated often enough to say how far the same run lies from itself
NOISE: dict[str, Callable[[Sequence[Row]], dict[str, Noise]]] = {"inference": repeats}


def validate(domain: str, data: Path | str | Sequence[Path | str] | None = None) -> Scorecard:
    """Score our predictions on the shipped measurements of a domain, or on files of the same columns.

    Rows that a constant was fitted on are counted apart and not scored; rows that cannot be expressed are
    counted with the reason.
    """
    if domain not in DOMAINS:
        raise UnknownNameError("domain", domain, DOMAINS, hint=f"domains: {', '.join(DOMAINS)}")
    formats = DOMAINS[domain]
    files = shipped_files(domain) if data is None else _paths(data)
    found = [one for path in files for one in outcomes(path, formats)]
    apart = coverage_apart([one for one in found if isinstance(one, Prediction) and not one.fitted])
    if domain not in NOISE:
        return scorecard(domain, found, apart=apart)
    rows = [row for path in files for row in read_rows(path)[1]]
    return scorecard(domain, found, noise=NOISE[domain](rows), apart=apart)


def shipped_files(domain: str) -> tuple[Path, ...]:
    """The measurements that come with the package."""
    folder = Path(str(resources.files("datahall.validation"))) / "data" / domain
    return tuple(sorted(folder.glob("*.csv")))


def outcomes(path: Path, formats: Sequence[Format]) -> Iterable[Outcome]:
    """Predict the rows of one file."""
    columns, rows = read_rows(path)
    return format_of(path, columns, formats).predict(rows)


def _paths(data: Path | str | Sequence[Path | str]) -> tuple[Path, ...]:
    given = [data] if isinstance(data, (str, Path)) else list(data)
    return tuple(Path(one) for one in given)
