"""Plan a service: on each kind of chip the least hardware that keeps the latency limits at the load asked.

offered  = users / (output · TPOT limit + think)     users who read at the pace of the limit, or the rate itself
replicas = ⌈offered / (held · (1 − headroom))⌉ + those that simulation asks for
chips    = replicas · chips of a replica
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import ceil
from typing import NamedTuple

import msgspec

from datahall.breakdown import Breakdown
from datahall.catalog import Catalog
from datahall.catalog.entries.chip import Chip
from datahall.catalog.entries.model import Model
from datahall.cluster.cluster import usual_chip
from datahall.cluster.wiring import Wiring, wiring_of
from datahall.errors import InfeasibleError, ScenarioError, UnsupportedError, option
from datahall.inference.closed_form.bottleneck import mean_step, resource_shares
from datahall.inference.closed_form.capacity import Held, held, num_replicas
from datahall.inference.closed_form.load import load_of
from datahall.inference.closed_form.steady_state import Load, State
from datahall.inference.engine.build import SMALLEST_FABRIC, implied_chip, replica_of
from datahall.inference.engine.engine import engine
from datahall.inference.engine.replica import Replica
from datahall.inference.fleet.fleet import Fleet, Pool
from datahall.inference.fleet.service import WARMUP
from datahall.inference.memory.kv_pool import divide_memory
from datahall.inference.simulation.run import ServingRun
from datahall.inference.simulation.simulate import simulate_serving
from datahall.planner.plan import Alternative, Objective, Plan, Refusal
from datahall.scenario.requests import requests_of
from datahall.scenario.scenario import Scenario
from datahall.scenario.sections.candidates import Candidates
from datahall.scenario.sections.deployment import Deployment
from datahall.scenario.sections.promise import Promise
from datahall.scenario.sections.traffic import Traffic as Said
from datahall.workload.sharding import Sharding
from datahall.workload.traffic.arrivals import Arrivals
from datahall.workload.traffic.traffic import Traffic, generate

USUAL_CHIPS = ("h100-sxm", "h200-sxm", "b200-sxm", "mi300x")
LARGEST_TP = 8  # beyond it decode steps are exchange; larger models take pipeline stages or spread experts
LARGEST_GROUP = 72
MOST_SIMULATED = 4  # replicas: more of the same under the same share behave alike
REQUESTS_SIMULATED = 3000
STAYS_SIMULATED = 10  # times that a request stays, at least
STEP_ADDED, MOST_ADDED = 0.05, 1.0  # of the replicas, where the limits were not kept when it was simulated
CURVE_ENDS = 2.5  # times the limit per token: beyond it the queue grows
LARGEST_ACROSS = 32  # chips over which experts are spread where the network joins their servers
FEWEST_CHIPS = Objective("chips", "count")


class Demand(msgspec.Struct, frozen=True, kw_only=True):
    """What comes in and within which limits it must be answered."""

    traffic: Traffic
    load: Load
    promise: Promise
    rate_per_s: float
    users: int = 0  # 0: the rate was given
    think_s: float = 0.0

    @property
    def reading_tokens_per_s(self) -> float:
        """The pace at which each user reads: that of the limit."""
        return 1.0 / self.promise.tpot_s


class Candidate(msgspec.Struct, frozen=True, kw_only=True):
    """One way to serve the demand."""

    held: Held
    precision: str
    num_replicas: int
    demand: Demand
    headroom_fraction: float
    num_added: int = 0  # of the replicas, more than the closed form asked for
    run: ServingRun | None = None  # some of its replicas under their share of the load and of the headroom

    @property
    def replica(self) -> Replica:
        return self.held.replica

    @property
    def key(self) -> tuple[str, str, int, int, int, int]:
        """What tells it from others: chip, format and degrees."""
        replica = self.replica
        return replica.chip.name, self.precision, replica.tp, replica.pp, replica.dp, replica.ep

    @property
    def num_chips(self) -> int:
        return self.num_replicas * self.replica.num_chips

    @property
    def replica_rate_per_s(self) -> float:
        """Requests per second that one replica gets."""
        return self.demand.rate_per_s / self.num_replicas

    @property
    def full_rate_per_s(self) -> float:
        """What all get when the headroom is used up."""
        return self.demand.rate_per_s / (1.0 - self.headroom_fraction)

    @property
    def more_load_fraction(self) -> float:
        """What that is more than the demand."""
        return self.full_rate_per_s / self.demand.rate_per_s - 1.0

    @property
    def state(self) -> State:
        """Of one rank when the demand is spread evenly."""
        return self.held.at(self.replica_rate_per_s)

    @property
    def full_state(self) -> State:
        """Of one rank when the headroom is used up."""
        return self.held.at(self.full_rate_per_s / self.num_replicas)

    @property
    def spare_fraction(self) -> float:
        """What could still come before the limits break."""
        return self.num_replicas * self.held.rate_per_s / self.demand.rate_per_s - 1.0

    @property
    def chip_output_tokens_per_s(self) -> float:
        """What one chip yields at the load asked."""
        return self.demand.rate_per_s * self.demand.load.output / self.num_chips

    def load_curve(self) -> list[tuple[float, float]]:
        """Requests per second and chip, and the mean time per token there, up to a few times the limit [s]."""
        return self.held.chip_curve(CURVE_ENDS * self.demand.promise.tpot_s)

    @property
    def num_requests(self) -> int:
        """Requests of a run of all its replicas that is long beside the stay of one."""
        stay_s = self.state.ttft_s + self.state.tpot_s * self.demand.load.output
        return int(float(f"{2 * STAYS_SIMULATED * self.demand.rate_per_s * stay_s:.2g}"))

    @property
    def keeps(self) -> bool:
        """Whether enough requests kept both limits when it was simulated."""
        return (
            self.run is not None
            and self.run.stable
            and self.run.good_fraction >= self.demand.promise.percentile
        )

    def mean_step(self) -> Breakdown:
        """The step of a rank at the most that a replica holds, opened."""
        return mean_step(self.replica, self.held.load, self.held.state)

    def resource_shares(self) -> dict[str, float]:
        """Shares of that step by the resource that bounds each of its parts, greatest first."""
        return resource_shares(self.mean_step())


class Refused(Refusal, frozen=True, kw_only=True):
    """A group that does not work; `runs`: the chip knows the format, but is too slow or too small."""

    chip: str
    runs: bool = True


class ServingPlan(Plan[Candidate], frozen=True, kw_only=True):
    """The best of all; `best` has that of each kind of chip, fewest chips first, the chosen one at the head."""

    best: tuple[Candidate, ...]
    num_candidates: int  # that keep the limits in closed form

    @property
    def demand(self) -> Demand:
        return self.chosen.demand


class Question(NamedTuple):
    """What is to be served, and the groups that are worth a look or say why they are not."""

    model: Model
    demand: Demand
    headroom_fraction: float
    chips: list[Chip]
    looked: list[tuple[Deployment, Replica] | Refused]  # a group with what it is part of


def question_of(scenario: Scenario) -> Question:
    """What a scenario asks for, made and checked before anything is weighed."""
    model = scenario.model()
    deployment = scenario.one(Deployment)
    check_continuous(deployment)
    demand, wiring = demand_of(scenario, model), wiring_of(scenario)
    asked = scenario.one(Candidates)
    implied = implied_chip(scenario)
    chips = [implied] if implied else [scenario.catalog.chip(name) for name in asked.chips or USUAL_CHIPS]
    if deployment.tp:
        Sharding(tp=float(deployment.tp)).check(model)
    looked: list[tuple[Deployment, Replica] | Refused] = []
    for part, precision in ((chip, name) for chip in chips for name in asked.precision):
        there = msgspec.structs.replace(deployment, chip=part.name, precision=precision)
        try:
            looked += [(there, group) for group in groups(there, model, scenario.catalog, wiring)]
        except ScenarioError as error:
            if error.field != "chip":  # other than a chip that the fabric does not join
                raise
            looked.append(_unwired(part, precision, error, usual_chip(wiring.design, scenario.catalog)))
    return Question(model, demand, asked.headroom_fraction, chips, looked)


def plan_serving(scenario: Scenario) -> ServingPlan:
    """The least hardware of each kind, chosen in closed form and confirmed by simulation."""
    model, demand, headroom, chips, looked = question_of(scenario)
    wiring = wiring_of(scenario)
    candidates: list[Candidate] = []
    refused: list[Refused] = []
    for group in looked:
        if isinstance(group, Refused):
            refused.append(group)
            continue
        there, replica = group
        try:
            most, count = _on_its_fabric(replica, there, demand, headroom, scenario.catalog, wiring)
        except (InfeasibleError, UnsupportedError, ScenarioError) as error:
            refused.append(_refusal(replica, there.precision, error))
            continue
        candidates.append(
            Candidate(
                held=most,
                precision=there.precision,
                num_replicas=count,
                demand=demand,
                headroom_fraction=headroom,
            )
        )
    if not candidates:
        raise _nothing(model, chips, refused)
    candidates.sort(key=lambda candidate: (candidate.num_chips, candidate.state.tpot_s))
    best = confirmed(candidates, seed=scenario.root.seed)
    least = {candidate.replica.chip.name: candidate for candidate in best}
    kept = {candidate.key for candidate in best}
    lost = [candidate for candidate in candidates if candidate.key not in kept]
    return ServingPlan(
        objective=FEWEST_CHIPS,
        chosen=best[0],
        alternatives=tuple(
            Alternative(candidate, _why(candidate, least[candidate.replica.chip.name])) for candidate in lost
        ),
        refusals=tuple(refused),
        best=best,
        num_candidates=len(candidates),
    )


def _on_its_fabric(
    replica: Replica,
    deployment: Deployment,
    demand: Demand,
    headroom: float,
    catalog: Catalog,
    wiring: Wiring,
) -> tuple[Held, int]:
    """What a group holds, and how many that takes, on a fabric that joins all of them: it grows until it does."""
    joined = SMALLEST_FABRIC
    while True:
        most = held(replica, demand.load, demand.promise)
        count = num_replicas(most, demand.rate_per_s, headroom)
        if not wiring.design.topology or count * replica.num_chips <= joined:
            return most, count
        joined = count * replica.num_chips
        whole = msgspec.structs.replace(
            deployment, replicas=count, tp=replica.tp, pp=replica.pp, dp=replica.dp, ep=replica.ep
        )
        system = replica_of(whole, replica.model, catalog, wiring).system
        replica = msgspec.structs.replace(replica, system=system)


def check_continuous(deployment: Deployment) -> None:
    """Refuse an engine of which there is no closed form."""
    batching = deployment.batching or engine(deployment.engine).batching
    if batching != "continuous":
        raise ScenarioError(
            f"{batching} batching has no closed form to plan with", field="engine",
            hint=f"datahall simulate serve simulates it; plans are for {option('engine', 'vllm')}, sglang, trtllm",
        )  # fmt: skip


def demand_of(scenario: Scenario, model: Model) -> Demand:
    """What comes in: a rate, or users who each read one answer after the other at the pace of the limit."""
    said, promise = scenario.one(Said), scenario.one(Promise)
    traffic = requests_of(said, scenario.one(Deployment).max_context or model.max_context)
    load = load_of(traffic)
    if traffic.users is None:
        assert said.rate_per_s is not None
        if said.rate_per_s == float("inf"):
            raise ScenarioError(
                "no hardware serves all requests at once", field="rate", hint=f"e.g. {option('rate', 80)}"
            )
        return Demand(traffic=traffic, load=load, promise=promise, rate_per_s=said.rate_per_s)
    think_s = traffic.users.think.mean_s
    rate = traffic.users.num / (load.output * promise.tpot_s + think_s)
    return Demand(
        traffic=traffic, load=load, promise=promise, rate_per_s=rate, users=traffic.users.num, think_s=think_s
    )


def confirmed(candidates: Sequence[Candidate], *, seed: int = 0) -> tuple[Candidate, ...]:
    """The best of each chip, simulated; where that takes more replicas, the next best ones are simulated too."""
    best: dict[str, Candidate] = {}
    for candidate in candidates:
        name = candidate.replica.chip.name
        known = best.get(name)
        if known is None:
            best[name] = confirm(candidate, seed=seed)
        elif candidate.num_chips < known.num_chips:
            rival = confirm(candidate, seed=seed, below=known.num_chips)
            if rival.keeps and (rival.num_chips < known.num_chips or not known.keeps):
                best[name] = rival
    return tuple(sorted(best.values(), key=lambda candidate: (not candidate.keeps, candidate.num_chips)))


def confirm(candidate: Candidate, *, seed: int = 0, below: int = 0) -> Candidate:
    """Simulate a candidate under its load and the headroom on top, and add replicas while the limits are not kept.

    Steps double until they are, then halve back; with `below`, no further than so many chips.
    """

    def with_more(steps: int) -> Candidate:
        return _simulated(candidate, steps * step, seed)

    step = max(1, round(STEP_ADDED * candidate.num_replicas))
    most = ceil(MOST_ADDED * candidate.num_replicas / step) + 1
    if below:
        most = min(most, max(0, below // candidate.replica.num_chips - candidate.num_replicas) // step)
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
        fewer = with_more(middle)
        best, broken, enough = (fewer, broken, middle) if fewer.keeps else (best, middle, enough)
    return best


def _simulated(candidate: Candidate, added: int, seed: int) -> Candidate:
    """Some of the replicas, and of those added, under their share of the load."""
    count = candidate.num_replicas + added
    num = min(MOST_SIMULATED, count)
    share = candidate.full_rate_per_s * num / count
    stay_s = candidate.state.tpot_s * candidate.demand.load.output
    traffic = candidate.demand.traffic
    asked = msgspec.structs.replace(
        traffic,
        arrivals=_at_rate(traffic, share),
        users=None,
        num_requests=max(REQUESTS_SIMULATED, int(STAYS_SIMULATED * share * stay_s)),
    )
    run = simulate_serving(
        Fleet(pools=(Pool(replica=candidate.replica, count=num, table=candidate.held.price.table),)),
        generate(asked, seed),
        slo=candidate.demand.promise,
        seed=seed,
        warmup_s=WARMUP * asked.num_requests / share,
    )
    return msgspec.structs.replace(candidate, num_replicas=count, num_added=added, run=run)


def _at_rate(traffic: Traffic, rate_per_s: float) -> Arrivals:
    """The same kind of arrivals at another rate of requests; conversations come, each with its turns."""
    per_s = rate_per_s / max(1.0, traffic.conversation.num_turns)
    if traffic.arrivals is None:
        return Arrivals(rate_per_s=per_s)
    return msgspec.structs.replace(traffic.arrivals, rate_per_s=per_s)


def groups(
    deployment: Deployment, model: Model, catalog: Catalog, wiring: Wiring | None = None
) -> Iterator[Replica]:
    """Groups worth a look: tensor parallelism inside a domain; for experts also attention apart and experts spread."""
    plain = replica_of(deployment, model, catalog, wiring)
    reach = plain.system.num_domain if plain.system else plain.chip.num_scale_up_domain
    domain = max(1, min(reach, LARGEST_GROUP))
    tp = deployment.tp
    degrees = [tp] if tp else [2**power for power in range(8) if 2**power <= min(domain, LARGEST_TP)]
    for degree in degrees:
        if not _legal(model, Sharding(tp=float(degree))):
            continue
        yield msgspec.structs.replace(plain, tp=degree)
        spread = Sharding(tp=float(degree), ep=float(degree))
        if model.moe is not None and degree > 1 and _legal(model, spread):
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


def _refusal(
    replica: Replica, precision: str, error: InfeasibleError | UnsupportedError | ScenarioError
) -> Refused:
    degrees = ", ".join(
        f"{name} {getattr(replica, name)}" for name in ("tp", "pp", "dp", "ep") if getattr(replica, name) > 1
    )
    return Refused(
        what=f"{replica.chip.name}, {degrees or '1 chip'}, {precision}",
        why=error.message,
        hint=error.hint,
        chip=replica.chip.name,
        runs=not isinstance(error, UnsupportedError),
    )


def _unwired(chip: Chip, precision: str, error: ScenarioError, usual: Chip) -> Refused:
    return Refused(
        what=f"{chip.name}, {precision}",
        why=error.message,
        hint=f"e.g. {option('chips', usual.name)}",
        chip=chip.name,
    )


def _why(candidate: Candidate, best: Candidate) -> str:
    """Why a candidate lost to the best of its chip."""
    if candidate.num_chips < best.num_chips:
        return "fewer chips in closed form, but more when simulated"
    more = candidate.num_chips - best.num_chips
    return f"{more:,} more chip{'s' if more > 1 else ''}" if more else "as many chips"


def _nothing(model: Model, chips: Sequence[Chip], refused: Sequence[Refused]) -> InfeasibleError:
    names = ", ".join(chip.name for chip in chips)
    if not refused:
        return InfeasibleError(
            f"{model.name} divides over no group of {names}",
            hint=f"another {option('tp')}, or a chip with a larger domain",
        )
    # the widest group of the last format that runs came nearest
    nearest = next((refusal for refusal in reversed(refused) if refusal.runs), refused[-1])
    return InfeasibleError(
        f"no group of {names} serves {model.name} as asked: {nearest.why}",
        where=f"the last of {len(refused):,} ways" if len(refused) > 1 else "",
        hint=nearest.hint
        or f"a longer {option('ttft')} or {option('tpot')}, a narrower {option('precision')}, a chip with more memory",
    )
