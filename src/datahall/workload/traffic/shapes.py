"""Shapes of the distribution of lengths, in tokens, and of a day."""

from __future__ import annotations

from itertools import pairwise

import msgspec

from datahall.errors import ScenarioError

LONGEST_TOKENS = 1e9  # a draw of as much is a mistake in the figures, and would not fit the sums
MOST_TURNS = 1000  # on average; a chunk holds whole sessions, and one of 65 times the mean never comes
PEAK_S = 14 * 3600.0  # of a day whose rate swings: two in the afternoon


class Fixed(msgspec.Struct, frozen=True, tag_field="shape", tag="fixed"):
    """Always the same."""

    tokens: int


class Uniform(msgspec.Struct, frozen=True, tag_field="shape", tag="uniform"):
    """Every length from `low` to `high`, both included, equally often."""

    low: int
    high: int


class Lognormal(msgspec.Struct, frozen=True, tag_field="shape", tag="lognormal"):
    """Lognormal by its mean and its standard deviation over the mean."""

    mean_tokens: float
    variation_ratio: float


class Quantiles(msgspec.Struct, frozen=True, tag_field="shape", tag="quantiles"):
    """Straight lines between published percentiles: pairs of (share below, tokens), from 0 to 1."""

    quantile_tokens: tuple[tuple[float, float], ...]


class Empirical(msgspec.Struct, frozen=True, tag_field="shape", tag="empirical"):
    """Lengths that were seen, each as likely as any other."""

    tokens: tuple[int, ...]


Lengths = Fixed | Uniform | Lognormal | Quantiles | Empirical


def check_day(hourly_factor: tuple[float, ...]) -> None:
    """Raise where some factors of a rate are not those of the hours of a day; none are those of a level one."""
    if hourly_factor and (len(hourly_factor) != 24 or min(hourly_factor) < 0 or sum(hourly_factor) <= 0):
        raise ScenarioError(
            f"{len(hourly_factor)} hourly factors, the least {min(hourly_factor):g}",
            field="hourly",
            hint="give 24 factors, none negative and not all zero; they are scaled to a mean of 1",
        )


def check_lengths(lengths: Lengths, where: str) -> None:
    """Raise where no positive number of tokens can be drawn."""
    allowed = "give a positive number of tokens"
    match lengths:
        case Fixed(tokens):
            wrong = not 0 < tokens < LONGEST_TOKENS
            seen = f"{tokens} tokens"
        case Uniform(low, high):
            wrong, seen = not 0 < low <= high < LONGEST_TOKENS, f"{low} to {high} tokens"
            allowed = "the least is positive and not above the most"
        case Lognormal(mean, variation):
            wrong = not 1 <= mean < LONGEST_TOKENS or not 0 <= variation <= 20
            seen = f"a mean of {mean:g} tokens with a variation of {variation:g}"
            allowed = "the mean is at least 1 token; the standard deviation is 0 to 20 times the mean"
        case Quantiles(points):
            wrong = not _rising(points)
            seen = f"percentiles {list(points)}"
            allowed = "pairs of (share, tokens) rise from share 0 to share 1, with positive tokens"
        case Empirical(values):
            wrong = not values or not 0 < min(values) <= max(values) < LONGEST_TOKENS
            seen = f"{len(values)} lengths" + (f" from {min(values)} to {max(values)}" if values else "")
            allowed = "give at least one length, all positive"
    if wrong:
        raise ScenarioError(f"{where} of {seen}", where=where, hint=allowed)


def _rising(points: tuple[tuple[float, float], ...]) -> bool:
    if len(points) < 2 or points[0][0] != 0 or points[-1][0] != 1 or points[0][1] < 1:
        return False
    steps = pairwise(points)
    return points[-1][1] < LONGEST_TOKENS and all(a[0] < b[0] and a[1] <= b[1] for a, b in steps)
