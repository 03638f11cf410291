"""`validate`: predict every measured row of a domain again and say how far off we are."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib import import_module, resources
from pathlib import Path
from types import ModuleType

from datahall.errors import UnknownNameError
from datahall.scenario.words import DOMAINS
from datahall.validation.coverage import coverage_apart
from datahall.validation.measurement import Format, Outcome, format_of, read_rows
from datahall.validation.scorecard import Noise, Prediction, Scorecard, scorecard


class Ledger(Mapping[str, tuple[Format, ...]]):
    """The file formats of each domain; one is loaded when it is asked for, and none of the others."""

    def __getitem__(self, domain: str) -> tuple[Format, ...]:
        formats: tuple[Format, ...] = _home(domain).FORMATS
        return formats

    def __iter__(self) -> Iterator[str]:
        return iter(DOMAINS)

    def __len__(self) -> int:
        return len(DOMAINS)


LEDGER = Ledger()


def validate(domain: str, data: Path | str | Sequence[Path | str] | None = None) -> Scorecard:
    """Score our predictions on the shipped measurements of a domain, or on files of the same columns.

    Rows that a constant was fitted on are counted apart and not scored; rows that cannot be expressed are
    counted with the reason.
    """
    if domain not in DOMAINS:
        raise UnknownNameError("domain", domain, DOMAINS, hint=f"domains: {', '.join(DOMAINS)}")
    formats = LEDGER[domain]
    files = shipped_files(domain) if data is None else _paths(data)
    found = [one for path in files for one in outcomes(path, formats)]
    apart = coverage_apart([one for one in found if isinstance(one, Prediction)])
    notes = getattr(_home(domain), "NOTES", ())
    return scorecard(domain, found, noise=_noise(domain, files), apart=apart, notes=notes)


def shipped_files(domain: str) -> tuple[Path, ...]:
    """The measurements that come with the package."""
    folder = Path(str(resources.files("datahall.validation"))) / "data" / domain
    return tuple(sorted(folder.glob("*.csv")))


def outcomes(path: Path, formats: Sequence[Format]) -> Iterable[Outcome]:
    """Predict the rows of one file."""
    columns, rows = read_rows(path)
    return format_of(path, columns, formats).predict(rows)


def _home(domain: str) -> ModuleType:
    if domain not in DOMAINS:
        raise KeyError(domain)
    return import_module(f"datahall.validation.{domain}")


def _noise(domain: str, files: Sequence[Path]) -> dict[str, Noise]:
    """How far the same run lies from itself, in a domain whose runs were repeated often enough to say so."""
    spread = getattr(_home(domain), "NOISE", None)
    if spread is None:
        return {}
    found: dict[str, Noise] = spread([row for path in files for row in read_rows(path)[1]])
    return found


def _paths(data: Path | str | Sequence[Path | str]) -> tuple[Path, ...]:
    given = [data] if isinstance(data, (str, Path)) else list(data)
    return tuple(Path(one) for one in given)
