"""Plan a service: on each kind of chip the least hardware that keeps the promise at the load asked.

offered = users / (output · TPOT limit)      users who read at the promised pace, or the rate itself
chips   = ⌈offered / (carried · (1 − headroom))⌉ · chips of a replica
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import ceil

import msgspec

from datahall.catalog.entries.chip import Chip
from datahall.catalog.entries.model import Model
from datahall.errors import InfeasibleError, ScenarioError, UnsupportedError
from datahall.inference.closed_form.capacity import HEADROOM, Carried, carried, num_replicas
from datahall.inference.closed_form.steady_state import Load, State
from datahall.inference.engine.checkpoint import block_scaled
from datahall.inference.engine.engine import engine_on
from datahall.inference.engine.replica import Replica
from datahall.scenario.promise import Promise
from datahall.inference.fleet.fleet import Fleet, Pool
from datahall.inference.memory.kv_pool import divide_memory
from datahall.inference.simulation.run import ServingRun
from datahall.inference.simulation.simulate import simulate_serving
from datahall.workload.precision import Precision
from datahall.workload.sharding import Sharding
from datahall.workload.traffic.arrivals import Arrivals
from datahall.workload.traffic.traffic import Traffic, generate

LARGEST_TP = 8  # beyond it decode steps are exchange; larger models take pipeline stages or spread experts
LARGEST_GROUP = 72
MOST_PLAYED = 4  # replicas: more of the same under the same share behave alike
REQUESTS_PLAYED = 3000
STAYS_PLAYED = 10  # times that a request stays, at least
STEP_ADDED, MOST_ADDED = 0.05, 1.0  # of the replicas, where the promise was not kept when it was played
LARGEST_ACROSS = 32  # chips over which experts are spread where the network joins their servers


class Demand(msgspec.Struct, frozen=True, kw_only=True):
    """What comes in and what is promised for it."""

    load: Load
    slo: Promise
    rate_per_s: float
    users: int = 0  # 0: the rate was given


class Choice(msgspec.Struct, frozen=True, kw_only=True):
    """One way to serve the demand."""

    carried: Carried
    precision: str
    num_replicas: int
    demand: Demand

    @property
    def replica(self) -> Replica:
        return self.carried.replica

    @property
    def num_chips(self) -> int:
        return self.num_replicas * self.replica.num_chips

    @property
    def state(self) -> State:
        """Of one rank when the demand is spread evenly."""
        return self.carried.at(self.demand.rate_per_s / self.num_replicas)

    @property
    def headroom_fraction(self) -> float:
        """What could still come before the promise breaks."""
        return self.num_replicas * self.carried.rate_per_s / self.demand.rate_per_s - 1.0

    @property
    def output_tokens_per_s(self) -> float:
        """What one chip yields at the load asked."""
        return self.demand.rate_per_s * self.demand.load.output / self.num_chips


class Confirmed(msgspec.Struct, frozen=True, kw_only=True):
    """A choice that was played: some of its replicas under their share of the load and of the headroom."""

    choice: Choice
    run: ServingRun
    num_played: int  # replicas
    num_added: int  # replicas more than the closed form asked for

    @property
    def keeps(self) -> bool:
        """Whether enough requests kept both limits."""
        return self.run.stable and self.run.good_fraction >= self.choice.demand.slo.percentile


class Refusal(msgspec.Struct, frozen=True):
    """A way that does not work, and why."""

    replica: Replica
    precision: str
    why: str
    hint: str = ""
    runs: bool = True  # the chip knows the format; it is too slow or too small


class ServingPlan(msgspec.Struct, frozen=True, kw_only=True):
    """The best way on each chip, and those that lost."""

    demand: Demand
    choices: tuple[Choice, ...]  # the best of each chip, fewest chips first
    others: tuple[Choice, ...]  # further ways, fewest chips first
    refused: tuple[Refusal, ...]
    headroom_fraction: float

    @property
    def best(self) -> Choice:
        return self.choices[0]


def demand_of_users(users: int, load: Load, slo: Promise, *, think_s: float = 0.0) -> Demand:
    """Users who each read one answer after the other at the promised pace, with a pause between."""
    if not slo.tpot_s < float("inf"):
        raise ScenarioError("users need a pace: say how fast tokens must come", hint="--tpot 50ms")
    rate = users / (load.output * slo.tpot_s + think_s)
    return Demand(load=load, slo=slo, rate_per_s=rate, users=users)


def plan_serving(
    model: Model,
    chips: Sequence[Chip],
    demand: Demand,
    engine: str,
    *,
    precisions: Sequence[str] = ("bf16",),
    headroom: float = HEADROOM,
    max_context: int = 0,
    tp: int = 0,
) -> ServingPlan:
    """The least hardware of each kind; where none works, an `InfeasibleError` that says what came nearest."""
    if not chips:
        raise ScenarioError("no chip to plan for", where="--chips", hint="--chips h100-sxm,h200")
    if not precisions:
        raise ScenarioError("no precision to plan for", where="--precision", hint="--precision bf16,fp8")
    if tp:
        Sharding(tp=float(tp)).check(model)
    found: list[Choice] = []
    refused: list[Refusal] = []
    for chip in chips:
        for name in precisions:
            for replica in candidates(model, chip, engine, Precision.named(name), max_context, tp):
                try:
                    one = carried(replica, demand.load, demand.slo)
                except (InfeasibleError, UnsupportedError, ScenarioError) as error:
                    runs = not isinstance(error, UnsupportedError)
                    refused.append(Refusal(replica, name, error.message, error.hint, runs))
                    continue
                count = num_replicas(one, demand.rate_per_s, headroom)
                found.append(Choice(carried=one, precision=name, num_replicas=count, demand=demand))
    found.sort(key=lambda one: (one.num_chips, one.state.tpot_s))
    if not found:
        raise _nothing(model, chips, refused)
    best = {one.replica.chip.name: one for one in reversed(found)}
    choices = sorted(best.values(), key=lambda one: (one.num_chips, one.state.tpot_s))
    chosen = {id(one) for one in choices}
    return ServingPlan(
        demand=demand,
        choices=tuple(choices),
        others=tuple(one for one in found if id(one) not in chosen),
        refused=tuple(refused),
        headroom_fraction=headroom,
    )


def confirmed(plan: ServingPlan, traffic: Traffic, *, seed: int = 0) -> tuple[Confirmed, ...]:
    """The best of each chip, played; where that takes more replicas, the next best ones are played too."""
    found: list[Confirmed] = []
    for choice in plan.choices:
        best = confirm(choice, traffic, plan.headroom_fraction, seed=seed)
        rivals = (one for one in plan.others if one.replica.chip.name == choice.replica.chip.name)
        for rival in rivals:
            if rival.num_chips >= best.choice.num_chips:
                break
            other = confirm(rival, traffic, plan.headroom_fraction, seed=seed, below=best.choice.num_chips)
            if other.keeps and other.choice.num_chips < best.choice.num_chips:
                best = other
        found.append(best)
    return tuple(sorted(found, key=lambda one: (not one.keeps, one.choice.num_chips)))


def confirm(
    choice: Choice, traffic: Traffic, headroom: float = HEADROOM, *, seed: int = 0, below: int = 0
) -> Confirmed:
    """Play a choice under its load and the headroom on top, and add replicas while the promise is not kept.

    Steps double until it is, then halve back; with `below`, no further than so many chips.
    """

    def with_more(steps: int) -> Confirmed:
        return _played(choice, traffic, headroom, steps * step, seed)

    step = max(1, round(STEP_ADDED * choice.num_replicas))
    most = ceil(MOST_ADDED * choice.num_replicas / step) + 1
    if below:
        most = min(most, max(0, below // choice.replica.num_chips - choice.num_replicas) // step)
    broken, enough = 0, 1
    best = with_more(0)
    while not best.keeps:
        if broken == most:
            return best
        enough = min(2 * broken or 1, most)
        best = with_more(enough)
        broken = broken if best.keeps else enough
    while best.num_added and enough - broken > 1:
        middle = (broken + enough) // 2
        found = with_more(middle)
        best, broken, enough = (found, broken, middle) if found.keeps else (best, middle, enough)
    return best


def _played(choice: Choice, traffic: Traffic, headroom: float, added: int, seed: int) -> Confirmed:
    """Some of the replicas, and of those added, under their share of the load."""
    count = choice.num_replicas + added
    num = min(MOST_PLAYED, count)
    share = choice.demand.rate_per_s / (1.0 - headroom) * num / count
    stay_s = choice.state.tpot_s * choice.demand.load.output
    asked = msgspec.structs.replace(
        traffic,
        arrivals=Arrivals(rate_per_s=share / max(1.0, traffic.conversation.num_turns)),  # of conversations
        users=None,
        num_requests=max(REQUESTS_PLAYED, int(STAYS_PLAYED * share * stay_s)),
    )
    run = simulate_serving(
        Fleet(pools=(Pool(replica=choice.replica, count=num, table=choice.carried.price.table),)),
        generate(asked, seed),
        slo=choice.demand.slo,
        seed=seed,
        warmup_s=0.1 * asked.num_requests / share,
    )
    larger = msgspec.structs.replace(choice, num_replicas=count)
    return Confirmed(choice=larger, run=run, num_played=num, num_added=added)


def candidates(
    model: Model, chip: Chip, engine: str, precision: Precision, max_context: int, tp: int = 0
) -> Iterator[Replica]:
    """Groups worth a look: tensor parallelism inside a domain; for experts also attention apart and experts spread."""
    domain = max(1, min(chip.num_scale_up_domain, LARGEST_GROUP))
    plain = Replica(
        model=model,
        chip=chip,
        engine=engine_on(engine, chip),
        precision=precision,
        max_context=max_context,
        block_scaled=block_scaled(model, precision.weights),
    )
    degrees = [tp] if tp else [2**power for power in range(8) if 2**power <= min(domain, LARGEST_TP)]
    for degree in degrees:
        if not _legal(model, Sharding(tp=float(degree))):
            continue
        yield msgspec.structs.replace(plain, tp=degree)
        if (
            model.moe is not None
            and degree > 1
            and _legal(model, Sharding(tp=float(degree), ep=float(degree)))
        ):
            yield msgspec.structs.replace(plain, tp=degree, ep=degree)
    if model.moe is not None and not tp:
        for ranks in (8, 16, 32, 64):
            if ranks <= max(domain, LARGEST_ACROSS) and model.moe.num_experts % ranks == 0:
                yield msgspec.structs.replace(plain, dp=ranks, ep=ranks)
    widest = msgspec.structs.replace(plain, tp=degrees[-1]) if degrees else plain
    for stages in (2, 4):
        if _holds(widest) or not _legal(model, Sharding(tp=float(widest.tp))):
            return  # stages serve models that one group does not hold
        widest = msgspec.structs.replace(widest, pp=stages)
        yield widest


def _holds(replica: Replica) -> bool:
    return divide_memory(replica).num_blocks > 0


def _legal(model: Model, sharding: Sharding) -> bool:
    try:
        sharding.check(model)
    except ScenarioError:
        return False
    return True


def _nothing(model: Model, chips: Sequence[Chip], refused: Sequence[Refusal]) -> InfeasibleError:
    names = ", ".join(chip.name for chip in chips)
    if not refused:
        return InfeasibleError(
            f"{model.name} divides over no group of {names}",
            hint="another --tp, or a chip with a larger domain",
        )
    # the widest group of the last format that runs came nearest
    nearest = next((one for one in reversed(refused) if one.runs), refused[-1])
    return InfeasibleError(
        f"no group of {names} serves {model.name} as asked: {nearest.why}",
        where=f"the last of {len(refused):,} ways" if len(refused) > 1 else "",
        hint=nearest.hint or "a longer --ttft or --tpot, a narrower --precision, a chip with more memory",
    )
