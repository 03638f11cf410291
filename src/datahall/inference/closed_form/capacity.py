"""How much one replica holds within latency limits, and how many of them a load needs.

held     = max { rate : TTFT and TPOT at the percentile ≤ their limits }      by bisection on the steady state
replicas = ⌈ offered / (held · (1 − headroom)) ⌉
"""

from __future__ import annotations

from math import ceil, floor, inf, isfinite, log10

import msgspec

from datahall.errors import option
from datahall.inference.closed_form.early import TooSlow
from datahall.inference.closed_form.steady_state import Curve, Load, State, at_rate, curve
from datahall.inference.engine.replica import Replica
from datahall.inference.memory.kv_capacity import KvCapacity, kv_capacity
from datahall.inference.step.price import StepPrice, price_steps
from datahall.scenario.sections.wanted.promise import Promise
from datahall.units import fmt

BISECTIONS = 20
LIGHT_FRACTION = 0.1  # of the greatest rate: limits that are kept there are worth asking for


class Held(msgspec.Struct, frozen=True, kw_only=True):
    """The most that one replica holds while its latencies keep their limits, and what ends it."""

    replica: Replica
    load: Load
    slo: Promise
    price: StepPrice
    capacity: KvCapacity
    curve: Curve
    rate_per_s: float  # of the whole replica: all its data-parallel ranks
    most_per_s: float  # without any limit
    state: State  # of one rank at that rate
    beyond: State  # and a step of the search further, where it breaks a limit
    ends: str  # "TPOT", "TTFT" or what ends the curve

    @property
    def cache_tokens(self) -> int:
        """Tokens that the caches of all ranks hold in sequences of the mean length."""
        return self.capacity.held_tokens(round(self.load.prompt + self.load.output)) * self.replica.dp

    def chip_curve(self, longest_s: float) -> list[tuple[float, float]]:
        """Requests per second and chip, and the TPOT at the percentile there, as long as that is no longer [s]."""
        chips_per_rank = self.replica.num_chips / self.replica.dp
        rates, times_s = self.curve.rate_per_s.tolist(), self.curve.tpot_high_s.tolist()
        return [
            (rate / chips_per_rank, time_s)
            for rate, time_s in zip(rates, times_s, strict=True)
            if time_s <= longest_s
        ]

    def at(self, rate_per_s: float) -> State:
        """The state of one rank when the replica gets so many requests per second."""
        return at_rate(self.curve, rate_per_s / self.replica.dp)


def held(replica: Replica, load: Load, slo: Promise) -> Held:
    """The most that a replica holds; an `InfeasibleError` where even one request breaks a limit."""
    capacity = kv_capacity(replica)  # refuses what holds no sequence, before its steps are priced
    price = price_steps(replica)
    load = msgspec.structs.replace(
        load, tokens_per_step=price.tokens_per_step, verified=float(price.table.num_verified)
    )
    return held_by(replica, load, slo, price, capacity)


def held_by(replica: Replica, load: Load, slo: Promise, price: StepPrice, capacity: KvCapacity) -> Held:
    """The same with steps of a price and a cache that are known, of a load that says what decodes bring into them."""
    if not load.streams:
        slo = msgspec.structs.replace(slo, tpot_s=inf)
    found = curve(price.table, replica, load, capacity, percentile=slo.percentile)
    most = found.most_per_s
    idle = at_rate(found, most * 1e-6)
    if idle.tpot_s > slo.tpot_s or idle.ttft_s > slo.ttft_s:
        raise _by_how_much(_too_slow(replica, slo, idle), found, slo, replica.engine.first_token_s)
    low, high = 0.0, most * (1.0 - 1e-6)
    if _keeps(at_rate(found, high), slo):
        low = high
    for _ in range(BISECTIONS if low < high else 0):
        middle = (low + high) / 2.0
        if _keeps(at_rate(found, middle), slo):
            low = middle
        else:
            high = middle
    if not low:
        raise _by_how_much(_no_load(replica, slo, idle), found, slo, replica.engine.first_token_s)
    state, over = at_rate(found, low), at_rate(found, high)
    late = over.within and isfinite(slo.ttft_s)  # a pool that only decodes promises no TTFT
    ends = "TPOT" if over.tpot_high_s > slo.tpot_s else "TTFT" if late else found.limit
    return Held(
        replica=replica,
        load=load,
        slo=slo,
        price=price,
        capacity=capacity,
        curve=found,
        rate_per_s=low * replica.dp,
        most_per_s=most * replica.dp,
        state=state,
        beyond=over if low < high else at_rate(found, most),
        ends=ends,
    )


def num_replicas(most: Held, offered_per_s: float, headroom: float) -> int:
    """Replicas that hold an offered rate with some of what they hold left free."""
    return max(1, ceil(offered_per_s / (most.rate_per_s * (1.0 - headroom)) - 1e-9))


def _keeps(state: State, slo: Promise) -> bool:
    return (
        state.stable and state.within and state.tpot_high_s <= slo.tpot_s and state.ttft_high_s <= slo.ttft_s
    )


def _by_how_much(error: TooSlow, found: Curve, slo: Promise, first_token_s: float) -> TooSlow:
    """The error with how far the percentiles are from their limits, and longer limits that are kept."""
    idle, light = (at_rate(found, found.most_per_s * share) for share in (1e-6, LIGHT_FRACTION))
    error.over_ratio = max(idle.tpot_high_s / slo.tpot_s, idle.ttft_high_s / slo.ttft_s)
    needed = {"ttft": (light.ttft_high_s, slo.ttft_s), "tpot": (light.tpot_high_s, slo.tpot_s)}
    longer = [
        option(name, f"{_rounded_up(value_s * 1e3):g}ms")
        for name, (value_s, limit_s) in needed.items()
        if value_s > limit_s
    ]
    if longer:
        error.longer = f"it keeps {' and '.join(longer)}"
        if first_token_s >= slo.ttft_s:
            error.longer += f", or a shorter {option('first_token')}"
        error.hint = f"{error.longer}; or {error.hint}"
    return error


def _rounded_up(value: float) -> float:
    """The next number of two digits.

    >>> _rounded_up(7.41), _rounded_up(103.0)
    (7.5, 110.0)
    """
    unit = 10.0 ** (floor(log10(value)) - 1)
    return float(f"{ceil(value / unit) * unit:.6g}")


def _no_load(replica: Replica, slo: Promise, idle: State) -> TooSlow:
    name, value_s, limit_s = "TTFT", idle.ttft_high_s, slo.ttft_s
    if idle.tpot_high_s / slo.tpot_s > value_s / limit_s:
        name, value_s, limit_s = "TPOT", idle.tpot_high_s, slo.tpot_s
    at = fmt(slo.percentile, "percentile")
    return TooSlow(
        f"{replica.model.name} on {replica.num_chips} × {replica.chip.name}: one request alone keeps TTFT ≤ "
        f"{fmt(slo.ttft_s, 's', 3)} and TPOT ≤ {fmt(slo.tpot_s, 's', 3)}, no load does at {at}, where {name} is "
        f"{fmt(value_s, 's', 3)} at the least",
        hint=f"more chips to a replica ({option('tp')})",
    )


def _too_slow(replica: Replica, slo: Promise, idle: State) -> TooSlow:
    if idle.tpot_s > slo.tpot_s:
        name, value_s, limit_s = "TPOT", idle.tpot_s, slo.tpot_s
        fix = f"more chips to a replica ({option('tp')}) or a narrower {option('precision')}"
    else:
        name, value_s, limit_s = "TTFT", idle.ttft_s, slo.ttft_s
        faster = f"more chips to a replica ({option('tp')}) or shorter prompts"
        fix = faster if replica.engine.first_token_s < slo.ttft_s else f"a shorter {option('first_token')}"
    return TooSlow(
        f"{replica.model.name} on {replica.num_chips} × {replica.chip.name}: one request alone has a {name} of "
        f"{fmt(value_s, 's', 3)}, over the limit of {fmt(limit_s, 's', 3)}",
        hint=fix,
    )
