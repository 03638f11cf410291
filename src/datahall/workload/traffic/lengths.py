"""How many tokens a prompt or an answer has: distributions drawn in columns, cut to a context where they must be."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import numpy as np

from datahall.errors import DocumentError, Problem, ScenarioError
from datahall.events.draws import normal_quantile
from datahall.workload.traffic.requests import Floats, Ints
from datahall.workload.traffic.shapes import (
    LONGEST_TOKENS,
    Empirical,
    Fixed,
    Lengths,
    Lognormal,
    Quantiles,
    Uniform,
)

Z95 = normal_quantile(0.95)


Draw = Callable[[np.random.Generator, int], Ints]


def lognormal_p95(mean_tokens: float, p95_tokens: float) -> Lognormal:
    """The lognormal with that mean and 95th percentile; of the two that exist, the less spread one.

    ln p95 − ln mean = zσ − σ²/2 with z = 1.645, so σ = z − √(z² − 2 ln(p95/mean)): p95 ≤ e^(z²/2) mean = 3.87 mean.
    """
    if not 0 < mean_tokens <= p95_tokens <= mean_tokens * math.exp(Z95**2 / 2):
        raise ScenarioError(
            f"no lognormal has a mean of {mean_tokens:g} and a 95th percentile of {p95_tokens:g} tokens",
            where="lengths",
            hint=f"the 95th percentile lies between 1 and {math.exp(Z95**2 / 2):.2f} times the mean",
        )
    # Rounding may leave a trace below zero at the largest ratio.
    sigma = Z95 - math.sqrt(max(0.0, Z95**2 - 2 * math.log(p95_tokens / mean_tokens)))
    return Lognormal(mean_tokens, math.sqrt(math.expm1(sigma**2)))


def lognormal_median(mean_tokens: float, median_tokens: float) -> Lognormal:
    """The lognormal with that mean and median: σ² = 2 ln(mean/median), so that 1 + variation² = (mean/median)²."""
    if not 0 < median_tokens <= mean_tokens:
        raise ScenarioError(
            f"no lognormal has a mean of {mean_tokens:g} and a median of {median_tokens:g} tokens",
            where="lengths",
            hint="the median lies below the mean; give percentiles instead",
        )
    return Lognormal(mean_tokens, math.sqrt((mean_tokens / median_tokens) ** 2 - 1.0))


def sampler(lengths: Lengths) -> Draw:
    """A function that draws so many lengths, each at least 1."""
    match lengths:
        case Fixed(tokens):
            return lambda _, size: np.full(size, tokens, np.int64)
        case Uniform(low, high):
            return lambda random, size: low + (random.random(size) * (high - low + 1)).astype(np.int64)
        case Lognormal(mean, variation):
            sigma = math.sqrt(math.log1p(variation**2))
            return _lognormal_draw(math.log(mean) - sigma**2 / 2, sigma)
        case Quantiles(points):
            shares, tokens_at = np.array(points, np.float64).T
            return lambda random, size: whole_tokens(np.interp(random.random(size), shares, tokens_at))
        case Empirical(values):
            known = np.array(values, np.int64)
            return lambda random, size: known[(random.random(size) * known.size).astype(np.int64)]


def _lognormal_draw(mu: float, sigma: float) -> Draw:
    def draw(random: np.random.Generator, size: int) -> Ints:
        values = random.standard_normal(size)
        values *= sigma
        values += mu
        return whole_tokens(np.exp(values, out=values))

    return draw


def whole_tokens(values: Floats) -> Ints:
    """The nearest whole number, at least 1."""
    return np.clip(np.rint(values, out=values), 1.0, LONGEST_TOKENS, out=values).astype(np.int64)


def mean_tokens(lengths: Lengths) -> float:
    """The mean before rounding and before any cut."""
    match lengths:
        case Fixed(tokens):
            return float(tokens)
        case Uniform(low, high):
            return (low + high) / 2
        case Lognormal(mean, _):
            return mean
        case Quantiles(points):
            steps = pairwise(points)
            return sum((b[0] - a[0]) * (a[1] + b[1]) / 2 for a, b in steps)
        case Empirical(values):
            return sum(values) / len(values)


def quantile_tokens(lengths: Lengths, share: float) -> float:
    """The length below which that share of draws lies."""
    match lengths:
        case Fixed(tokens):
            return float(tokens)
        case Uniform(low, high):
            return low + share * (high - low)
        case Lognormal(mean, variation):
            sigma = math.sqrt(math.log1p(variation**2))
            return mean * math.exp(sigma * normal_quantile(share) - sigma**2 / 2)
        case Quantiles(points):
            return float(np.interp(share, [p[0] for p in points], [p[1] for p in points]))
        case Empirical(values):
            return float(np.quantile(np.array(values), share, method="inverted_cdf"))


def cut_to_context(prompt: Ints, output: Ints, max_context: int) -> tuple[Ints, Ints, int, int]:
    """Prompts and outputs that fit a context together, and how many of each had to be cut.

    An answer ends where the context is full, as in an engine; a prompt that leaves no room for one token is cut to
    leave just that.
    """
    if not max_context:
        return prompt, output, 0, 0
    num_prompts = int(np.count_nonzero(prompt > max_context - 1))
    if num_prompts:
        prompt = np.minimum(prompt, max_context - 1)
    room = max_context - prompt
    num_outputs = int(np.count_nonzero(output > room))
    return prompt, np.minimum(output, room) if num_outputs else output, num_prompts, num_outputs


def lengths_file(path: str | Path) -> Empirical:
    """Lengths from a text file with one whole number on each line; a first line of words is a heading."""
    name = str(path)
    try:
        lines = Path(path).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise DocumentError(name, [Problem(name, f"cannot be read: {error}")]) from error
    values, problems = [], []
    for number, line in enumerate(lines, 1):
        text = line.strip()
        if text.isdecimal() and int(text) > 0:
            values.append(int(text))
        elif text and not (number == 1 and text.replace("_", "a").isalpha()):
            problems.append(
                Problem(f"{name}:{number}", f"{text!r} is not a length", "write a whole number above 0")
            )
    if not values and not problems:
        problems.append(Problem(f"{name}:1", "no lengths in it", "write one whole number on each line"))
    if problems:
        raise DocumentError(name, problems)
    return Empirical(tuple(values))
