"""What export rules say of a chip and a country: by name, or by its total processing performance.

performance = max over formats of (dense TFLOP/s · bits)
"""

from __future__ import annotations

from math import isfinite, isnan

from datahall.catalog import Catalog
from datahall.catalog.entries.chip import Chip
from datahall.catalog.entries.supply.country import Country
from datahall.catalog.entries.supply.licence import Licence
from datahall.catalog.number_formats import FORMATS

TERA = 1e12
DENSE_FROM = (
    1600.0  # with less, no density of a die brings a chip under the rules; from it on the density may
)


def performance(chip: Chip) -> float:
    """Total processing performance of a chip; 0 where no peak is published.

    >>> from datahall.catalog import load
    >>> round(performance(load().chip("h200-sxm")))  # 15,832 in the press on the rule of January 2026
    15832
    """
    return max((rate / TERA * FORMATS[name].bits for name, rate in chip.peak_flop_per_s.items()), default=0.0)


def licence_for(chip: Chip, country: str, catalog: Catalog) -> Licence | None:
    """The rule that holds for a chip that goes to a country: the last of those that apply; None where none does."""
    there = catalog.country(country)
    return next((one for one in reversed(catalog.licences()) if _applies(one, chip, there)), None)


def is_unknown(chip: Chip, country: str, catalog: Catalog) -> bool:
    """Whether rules of that country hang on the area of the die, which the catalogue has not."""
    there = catalog.country(country)
    rules = [one for one in catalog.licences() if _is_for(one, chip, there)]
    least = min(
        (one.num_least_performance for one in rules if isfinite(one.num_least_performance)), default=0.0
    )
    return licence_for(chip, country, catalog) is None and DENSE_FROM <= performance(chip) < least


def _applies(rule: Licence, chip: Chip, there: Country) -> bool:
    if not _is_for(rule, chip, there):
        return False
    if chip.name in rule.chips:
        return True
    within = rule.num_least_performance <= performance(chip) < rule.num_most_performance
    return within and (isnan(chip.memory_bytes_per_s) or chip.memory_bytes_per_s < rule.most_bytes_per_s)


def _is_for(rule: Licence, chip: Chip, there: Country) -> bool:
    """Whether a rule is of that country, and for chips of that vendor."""
    grouped = set(rule.groups) & set(there.groups) and not set(rule.spared_groups) & set(there.groups)
    return (bool(grouped) or there.name in rule.countries) and chip.vendor not in rule.spared_vendors
