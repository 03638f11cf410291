"""Shapes of the distribution of lengths, in tokens, and of a day."""

from __future__ import annotations

import msgspec

LONGEST_TOKENS = 1e9  # a draw of as much is a mistake in the figures, and would not fit the sums
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
