"""The steady state of a replica in closed form, for search: one curve over how many sequences decode at once.

    d   = (output − 1) / tokens per step                   steps that a request decodes
    r   = n / d                                            prompts that start per step, for the n to stay n
    T   = Σ_j Poisson(j; r) · T(n, j prompts)              mean step;  TPOT = T / tokens per step
    X   = n / (d·T)                                        requests per second (Little)
    σ²  = X / X′(n)                                        of n: arrivals push it away, X′ pulls it back
    TTFT = what is left of the step met + the step that takes the prompt, with those that came meanwhile + queue

What does not depend on the load is read from the same step table that the event simulation reads.  Fluctuations are
those of the linear noise approximation, which is Poisson for a fast server and grows without bound near saturation.
References: Little (1961); van Kampen (1961), the expansion of the master equation; Erlang (1917) for the wait for a
place; Pollaczek (1930) for the queue of prompts.
"""

from __future__ import annotations

import math
from functools import cached_property
from statistics import NormalDist

import msgspec
import numpy as np
from numpy.typing import NDArray

from datahall.inference.engine.adapters import first_token_s
from datahall.inference.engine.replica import Replica
from datahall.inference.memory.kv_capacity import KvCapacity
from datahall.inference.step.column import (
    Between,
    Column,
    decode_times,
    distinct,
    joined_times,
    met_times,
    prefill_times,
    rising,
    step_times,
)
from datahall.inference.step.price import round_token_budget
from datahall.inference.step.table import StepTable
from datahall.scenario.sections.wanted.promise import USUAL_PERCENTILE

POINTS = 48  # of the curve
MOST_PROMPTS, MOST_PROMPTS_OF_RANKS = 8, 32  # that are told apart in one step
ROUNDS = 12  # of the fixed point of prompts that come together
RESIDUALS = (np.arange(6) + 0.5) / 6  # of a step that is under way
# seven points and their weights of Gauss and Hermite, for e^(−x²/2); numpy's own take a tenth of what an import takes
GAUSS = np.array([
    -3.7504397177257425, -2.366759410734541, -1.1544053947399682, 0.0, 1.1544053947399682, 2.366759410734541,
    3.7504397177257425,
])  # fmt: skip
GAUSS_WEIGHTS = np.array([
    0.0013743062164795505, 0.07709667658348317, 0.6018995488855944, 1.145887211259886, 0.6018995488855944,
    0.07709667658348317, 0.0013743062164795505,
])  # fmt: skip
NEAR_SATURATION = 0.9  # of the greatest rate: beyond it the closed form only bounds the wait


class Load(msgspec.Struct, frozen=True, kw_only=True):
    """What a mean request asks for."""

    prompt: float  # tokens
    output: float  # tokens
    cached: float = 0.0  # tokens of the prompt found in the prefix cache
    tokens_per_step: float = 1.0  # that a decoding sequence gets, with speculation
    verified: float = 1.0  # tokens that it brings into a step: one, and the drafted ones
    spread: float = 0.0  # coefficient of variation of the prompt's length
    output_spread: float = 0.0  # and of the answer's

    @property
    def streams(self) -> bool:
        """Whether an answer has a second token, and so a time per token."""
        return self.output > 1.0

    @property
    def steps(self) -> float:
        """Steps that a request decodes."""
        return max(self.output - 1.0, 0.5) / self.tokens_per_step

    @property
    def longest(self) -> float:
        """Mean tokens of an answer among those that are being written: long ones are met more often."""
        return self.output * (1.0 + self.output_spread**2)

    @property
    def aged(self) -> float:
        """Tokens that an answer met at some moment has on average: half of what it will have."""
        return self.longest / 2.0

    @property
    def computed(self) -> float:
        """Tokens of a prompt that are computed."""
        return max(1.0, self.prompt - self.cached)


class Curve(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """A replica's rank at every load, as columns over the mean number of sequences that decode at once [s]."""

    decoding: Column
    step_s: Column
    tpot_s: Column
    tpot_high_s: Column  # at the percentile
    ttft_s: Column  # while there is a place for every request
    ttft_high_s: Column
    rate_per_s: Column
    within: NDArray[np.bool_]  # the number of sequences keeps away from the limit at the percentile
    limit: str  # what ends the curve: "cache", "sequences" or "budget"
    percentile: float
    most: float  # sequences
    most_per_s: float  # the greatest rate that it can hold: always as many sequences as there is room for

    @cached_property
    def by_rate(self) -> tuple[Column, Column]:
        """Rates and the sequences of each, where the rate rises."""
        return rising(self.rate_per_s, self.decoding)

    @cached_property
    def between(self) -> Between:
        """TTFT and TPOT, mean and at the percentile, and whether it is within, by the sequences."""
        columns = (self.ttft_s, self.tpot_s, self.ttft_high_s, self.tpot_high_s, self.within.astype(float))
        return Between.of(self.decoding, *columns)


class _Steps(msgspec.Struct, frozen=True):
    """Steps of a rank by its sequences and the prompts of all ranks: [sequences, prompts]."""

    step_s: NDArray[np.float64]  # one step, prompts beyond the budget left for later
    whole_s: NDArray[np.float64]  # all the steps that these prompts take


def curve(
    table: StepTable,
    replica: Replica,
    load: Load,
    capacity: KvCapacity,
    *,
    percentile: float = USUAL_PERCENTILE,
) -> Curve:
    """The steady states of one of a replica's ranks."""
    most, limit = most_sequences(replica, load, capacity)
    n = distinct(np.append(np.geomspace(0.01, 1.0, 8), np.geomspace(1.0, max(1.0, most), POINTS)))
    n = n[n <= max(most, n[1])]
    count = np.arange((MOST_PROMPTS if replica.dp == 1 else MOST_PROMPTS_OF_RANKS) + 1.0)
    steps = _steps(table, replica, load, n, count)
    started = replica.dp * n / load.steps  # per step of all ranks
    chance = _carried(started, steps)
    mean_s = np.maximum.accumulate((chance * steps.step_s).sum(axis=1))
    rate = n / (load.steps * mean_s)
    pull = np.maximum(_slope(n, rate), 1e-3 * rate / n)
    sigma = np.sqrt(rate / pull)
    weights = GAUSS_WEIGHTS / GAUSS_WEIGHTS.sum()
    spread = np.maximum(0.0, n[:, None] + sigma[:, None] * GAUSS)
    sampled = np.minimum(most, spread * (n / (spread * weights).sum(axis=1))[:, None])
    mean_rate = np.maximum.accumulate((np.interp(sampled, n, rate) * weights).sum(axis=1))
    by_sequence = weights * sampled / np.maximum((weights * sampled).sum(axis=1), 1e-12)[:, None]
    quantile = NormalDist().inv_cdf(percentile)
    # a request sees the mean over its stay of a number that forgets itself in 1/X′
    memory = np.minimum(rate / n / pull, 1e3)
    seen = np.sqrt(2 * memory * (1 - memory * -np.expm1(-1 / memory)))
    prompt_s = steps.step_s[:, 1] - steps.step_s[:, 0]
    uneven = started * (load.spread * prompt_s) ** 2
    variance = np.maximum(0.0, (chance * steps.step_s**2).sum(axis=1) - mean_s**2) + uneven
    drift_s = np.interp(np.minimum(n + sigma * seen, most), n, mean_s) - mean_s
    tpot_high_s = mean_s + _excess(drift_s, variance, load, percentile)
    ttft_s, ttft_high_s = _first_tokens(replica, load, n, started, steps, percentile)
    longer_s = max(0.0, quantile) * load.spread * prompt_s
    return Curve(
        decoding=n,
        step_s=mean_s,
        tpot_s=(np.interp(sampled, n, mean_s) * by_sequence).sum(axis=1) / load.tokens_per_step,
        tpot_high_s=tpot_high_s / load.tokens_per_step,
        ttft_s=ttft_s + uneven / (2.0 * mean_s),
        ttft_high_s=np.maximum(
            ttft_high_s, ttft_s + np.hypot(np.maximum(0.0, ttft_high_s - ttft_s), longer_s)
        )
        if longer_s.any()
        else ttft_high_s,
        rate_per_s=mean_rate,
        within=(n + max(0.0, quantile) * sigma <= most) | (n < 1.0),
        limit=limit,
        percentile=percentile,
        most=most,
        most_per_s=float(rate.max(initial=0.0)),
    )


def _slope(n: Column, rate: Column) -> Column:
    """X′ over the numbers that chance reaches, n ± √n: kernels step up with n, and the flats between are narrower."""
    reach = np.sqrt(np.maximum(n, 1.0))
    low, high = np.maximum(n - reach, n[0]), np.minimum(n + reach, n[-1])
    return np.asarray((np.interp(high, n, rate) - np.interp(low, n, rate)) / (high - low))


def _excess(drift_s: Column, variance: Column, load: Load, percentile: float) -> Column:
    """What a percentile of requests sees beyond the mean step: the drift of n, and few steps where answers are short.

    Σ_i w_i Φ(x / √(drift² + variance/d_i)) = percentile, over lognormal numbers of steps d_i; Φ by its logistic form.
    """
    spread = np.sqrt(np.log1p(load.output_spread**2))
    steps = np.maximum(1.0, load.steps * np.exp(spread * GAUSS - spread**2 / 2.0))
    sigma_s = np.sqrt(drift_s[:, None] ** 2 + variance[:, None] / steps) + 1e-12
    weights = GAUSS_WEIGHTS / GAUSS_WEIGHTS.sum()
    low_s, high_s = np.zeros_like(drift_s), 8.0 * sigma_s.max(axis=1)
    for _ in range(25):
        middle_s = (low_s + high_s) / 2.0
        below = (weights / (1.0 + np.exp(-1.702 * middle_s[:, None] / sigma_s))).sum(axis=1) < percentile
        low_s, high_s = np.where(below, middle_s, low_s), np.where(below, high_s, middle_s)
    return np.asarray(high_s)


def most_sequences(replica: Replica, load: Load, capacity: KvCapacity) -> tuple[float, str]:
    """Sequences that decode at once at most, and what says so."""
    engine = replica.engine
    held = load.prompt + (load.longest if engine.whole_output_blocks else load.aged)
    budget = float(round_token_budget(replica))
    by = {
        "cache": capacity.num_blocks / capacity.blocks(held),
        "sequences": float(engine.max_sequences * replica.pp),
        "budget": budget / (load.verified + (load.computed / load.steps if engine.mixed_steps else 0.0)),
    }
    limit = min(by, key=lambda name: by[name])
    return by[limit], limit


def _steps(table: StepTable, replica: Replica, load: Load, n: Column, count: Column) -> _Steps:
    """T(n, j): a step with j prompts beside n decodes; with steps of their own, one of prompts while decodes wait.

    Data-parallel ranks step together: the prompts of all are spread over them, the fullest has one more than the mean,
    and experts see the mean.  Fewer than one sequence in the mean is no smaller step: one that runs has a whole one,
    and ranks without any pass one through their experts.
    """
    mixed, lanes = replica.engine.mixed_steps, replica.dp
    count = count[None, :]
    own = np.ceil(count / lanes)  # prompts on the fullest rank
    least = np.where(count == 0, 1.0, 0.0)  # beside a prompt there may be none
    decodes = np.maximum(n[:, None] * np.where(mixed | (count == 0), 1.0, 0.0), least)
    room = np.maximum(float(round_token_budget(replica)) - decodes * load.verified, 1.0)
    pieces = np.maximum(1.0, np.ceil(own * load.computed / room))
    cuts = np.maximum(1.0, np.ceil(load.computed / room))
    past = load.cached + (cuts - 1.0) / 2.0 * load.computed / cuts
    attention_s = own * cuts * prefill_times(table, load.computed / cuts, past) / pieces
    context = load.prompt + load.aged
    given = (decodes, own * load.computed / pieces, attention_s, own, count / lanes * load.computed / pieces)
    num, tokens, prompts_s, rows, mean = (np.ravel(np.broadcast_to(one, decodes.shape)) for one in given)
    step_s = step_times(table, num * load.verified + tokens, num, context, prompts_s, num + rows)
    piece = np.ravel(np.broadcast_to(np.minimum(load.computed, room), decodes.shape))
    beside_s = joined_times(table, num, context, piece) - decode_times(table, num, context)
    step_s += np.where(tokens > 0.0, beside_s, 0.0)
    if lanes > 1:
        step_s += met_times(table, num * load.verified + mean) - met_times(
            table, num * load.verified + tokens
        )
    one_s = step_s.reshape(decodes.shape)
    if not mixed:
        one_s = one_s + np.where(count > 0, one_s[:, :1], 0.0)  # the decode step that waited
    return _Steps(one_s, pieces * one_s)


def _poisson(mean: Column, count: Column) -> NDArray[np.float64]:
    """Chance of each count; what lies beyond is added to the last."""
    log_factorial = np.cumsum(np.log(np.maximum(count, 1.0)))
    mean = np.maximum(mean, 1e-12)[..., None]
    chance = np.exp(count * np.log(mean) - mean - log_factorial)
    chance[..., -1] += np.maximum(0.0, 1.0 - chance.sum(axis=-1))
    return np.asarray(chance / chance.sum(axis=-1, keepdims=True))


def _carried(started: Column, steps: _Steps) -> NDArray[np.float64]:
    """Share of steps that carry some of 0, 1, 2 … prompts.

    Prompts that pass the budget take several steps: of m that come together, r = m / E[steps they take].
    """
    pieces = steps.whole_s / steps.step_s
    count = np.arange(float(pieces.shape[1]))
    together = started
    for _ in range(ROUNDS):
        together = np.minimum(started * (_poisson(together, count) * pieces).sum(axis=1), count[-1])
    share = _poisson(together, count) * pieces
    return np.asarray(share / share.sum(axis=1, keepdims=True))


def _first_tokens(
    replica: Replica, load: Load, n: Column, started: Column, steps: _Steps, percentile: float
) -> tuple[Column, Column]:
    """Mean and percentile of the time to the first token, over the step that an arrival meets and who came with it."""
    count = np.arange(float(steps.step_s.shape[1]))
    met = _poisson(started, count) * steps.step_s  # a longer step is met more often
    met = met / met.sum(axis=1, keepdims=True)
    idle = np.exp(-n)
    together = _poisson(started[:, None] * steps.step_s / steps.step_s[:, :1], count)  # [n, met, company]
    served = np.concatenate([steps.whole_s[:, 1:], steps.whole_s[:, -1:]], axis=1)
    times = RESIDUALS[None, :, None, None] * steps.step_s[:, None, :, None] + served[:, None, None, :]
    weights = ((1 - idle)[:, None, None] * met[:, :, None] * together)[:, None] / RESIDUALS.size
    weights = np.broadcast_to(weights, times.shape)
    num = n.size
    times = np.concatenate([times.reshape(num, -1), steps.whole_s[:, 1:2]], axis=1)
    weights = np.concatenate([weights.reshape(num, -1), idle[:, None]], axis=1)
    mean_s = (times * weights).sum(axis=1)
    order = np.argsort(times, axis=1)
    reached = np.cumsum(np.take_along_axis(weights, order, axis=1), axis=1) >= percentile
    high_s = np.take_along_axis(
        times, np.take_along_axis(order, reached.argmax(axis=1)[:, None], axis=1), axis=1
    )[:, 0]
    budget = float(round_token_budget(replica))
    room = (
        np.maximum(budget - n * load.verified, 1.0) if replica.engine.mixed_steps else np.full_like(n, budget)
    )
    busy = np.clip(started / replica.dp * load.computed / room, 0.0, 1.0 - 1e-6)
    fill = min(count.size - 1, max(1, int(budget / load.computed)))
    queue_s = (
        busy / (1.0 - busy) * (1.0 + load.spread**2) / 2.0 * load.computed / room * steps.step_s[:, fill]
    )
    waited_s = first_token_s(replica)
    extra_s = waited_s + queue_s
    return mean_s + extra_s, high_s + waited_s - np.log1p(-percentile) * queue_s


class State(msgspec.Struct, frozen=True, kw_only=True):
    """A replica's rank at one load."""

    decoding: float
    rate_per_s: float
    ttft_s: float
    tpot_s: float
    ttft_high_s: float  # at the percentile of the curve
    tpot_high_s: float
    use: float  # of the greatest rate
    stable: bool
    within: bool  # of the limits of cache and engine, at the percentile

    @property
    def near_saturation(self) -> bool:
        """Whether waits are only bounded: a simulation tells them."""
        return self.use > NEAR_SATURATION


def at_rate(found: Curve, rate_per_s: float) -> State:
    """The state under independent (Poisson) arrivals of a rate; unstable where the curve ends below it."""
    most = found.most_per_s
    use = rate_per_s / most if most > 0 else np.inf
    if use >= 1.0:
        tpot_s, decoding = float(found.tpot_s[-1]), float(found.decoding[-1])
        return State(
            decoding=decoding, rate_per_s=most, ttft_s=np.inf, tpot_s=tpot_s, tpot_high_s=tpot_s, ttft_high_s=np.inf,
            use=float(use), stable=False, within=False,
        )  # fmt: skip
    n = float(np.interp(rate_per_s, *found.by_rate))
    wait_s = _place_wait(found, n, rate_per_s)
    return _state(found, n, rate_per_s, wait_s, use)


def at_concurrency(found: Curve, users: float, load: Load, *, think_s: float) -> State:
    """The state with so many users, each of whom sends the next request `think_s` after the last answer ended.

    Users are taken to be out of step with each other; with lengths that are all the same they march together, and
    their prompts meet: a simulation shows it.
    """
    present = found.rate_per_s * (found.ttft_s + load.steps * found.step_s + think_s)
    n = float(np.interp(users, *rising(present, found.decoding)))
    rate = (
        float(np.interp(n, found.decoding, found.rate_per_s))
        if n >= found.decoding[0]
        else users * found.most_per_s
    )
    waiting = max(0.0, users - float(present.max()))
    return _state(found, n, rate, waiting / rate, rate / found.most_per_s)


def _state(found: Curve, n: float, rate: float, wait_s: float, use: float) -> State:
    ttft_s, tpot_s, ttft_high_s, tpot_high_s, within = found.between.at(n)
    return State(
        decoding=n,
        rate_per_s=rate,
        ttft_s=ttft_s + wait_s,
        tpot_s=tpot_s,
        ttft_high_s=ttft_high_s - math.log1p(-found.percentile) * wait_s,
        tpot_high_s=tpot_high_s,
        use=float(use),
        stable=True,
        within=within > 0.5,
    )


def _place_wait(found: Curve, n: float, rate: float) -> float:
    """Mean wait for one of the places that the cache or the engine has, by Erlang's delay formula [s]."""
    places = int(found.most)
    if places < 1 or n < 0.3 * places:
        return 0.0
    blocked = 1.0
    for place in range(1, places + 1):
        blocked = n * blocked / (place + n * blocked)
    delayed = blocked / (1.0 - n / places * (1.0 - blocked)) if n < places else 1.0
    return float(delayed * n / rate / max(places - n, 1e-3))
