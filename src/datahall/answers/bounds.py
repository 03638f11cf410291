"""What a person may ask for: counts within reason, and models by name or by file."""

from __future__ import annotations

from pathlib import Path

from datahall.catalog import Catalog, load
from datahall.catalog.entries.model import Model
from datahall.errors import ScenarioError, UnitError
from datahall.units import parse

LARGEST = 2**40  # beyond it a count is a slip of the hand


def whole(name: str, value: str | float, *, at_least: int = 1, at_most: int = LARGEST) -> int:
    """Read a count ("8192", "8k", 32) that an option gives; what is out of bounds is a `ScenarioError`.

    >>> whole("batch", "2k"), whole("seq", 8192)
    (2000, 8192)
    """
    try:
        number = parse(value, "count")
    except UnitError as error:
        raise ScenarioError(f"--{name}: {error.message}", hint=f"a whole number, e.g. --{name} 32") from error
    if number != int(number):
        raise ScenarioError(f"--{name} is {value}; it must be a whole number")
    if number < at_least:
        raise ScenarioError(f"--{name} is {value}; it must be at least {at_least}")
    if number > at_most:
        raise ScenarioError(f"--{name} is {value}; it must be at most {at_most:,}")
    return int(number)


def opened(catalog: Catalog | None) -> Catalog:
    """The catalogue that was given, or the default one."""
    return load() if catalog is None else catalog


def find_model(name: str, catalog: Catalog) -> Model:
    """A model of the catalogue, or the one that a `config.json` describes."""
    path = Path(name)
    if path.suffix == ".json" or (path / "config.json").is_file():
        from datahall.catalog.huggingface import from_config

        return from_config(path if path.suffix == ".json" else path / "config.json")
    return catalog.model(name)
