"""A training plan: the chosen layout, the ranking behind it, and what it hangs on.

duration = ⌈tokens / (global batch · sequence)⌉ · step
"""

from __future__ import annotations

from math import inf
from typing import NamedTuple

from datahall.cluster.cluster import Cluster
from datahall.economics.sections.run import TrainingCost
from datahall.errors import option
from datahall.fabric.design.bill import Bill
from datahall.planner.plan import Alternative, Plan
from datahall.planner.training.candidate import Candidate, Chosen
from datahall.planner.training.trade import OnChips
from datahall.reliability.sections.goodput import Goodput
from datahall.scenario.scenario import Scenario
from datahall.training.layout.layout import Layout
from datahall.training.layout.search import Change, Elsewhere, Loss, Search
from datahall.training.memory.offload import Line
from datahall.training.pipeline.execution import Execution
from datahall.training.pipeline.step_memory import StepMemory
from datahall.training.pipeline.table import usual_order
from datahall.training.setup import Setup
from datahall.training.step.step import Job, step_band

SAME = 1.005  # times as long are as long
MANY = 100  # interruptions of a run, of which chance makes little more or fewer
FAR = 1.25  # times a limit: with so many, nine of ten runs are not so much faster than is expected


class Lost(Alternative[Candidate], frozen=True, kw_only=True):
    """A layout that would do, and how it compares with the chosen one: as simulated where both were."""

    loss: Loss
    leaves_domain: bool = False  # its tensor parallelism, where the chosen one's does not


class Tried(NamedTuple):
    """A number of chips that was tried for a deadline, and how many of them the plan takes; 0 where there is none."""

    num_chips: int
    num_taken: int


class Mended(NamedTuple):
    """A change of one input with which nine of ten runs are done."""

    name: str  # of the input
    text: str  # as it is typed

    @property
    def words(self) -> str:
        return option(self.name, self.text)


class Fix(NamedTuple):
    """A change of one input with which a run is paid for."""

    name: str  # of the input
    text: str  # as it is typed
    cost_usd: float

    @property
    def words(self) -> str:
        return option(self.name, self.text)


class Over(NamedTuple):
    """By how much a run costs more than it may, and what would be enough."""

    by_usd: float
    by_fraction: float
    fixes: tuple[Fix, ...]


class Present(NamedTuple):
    """The layout of somebody's file on the same chips, and how it compares with the chosen one."""

    file: str
    execution: Execution
    memory: StepMemory
    loss: Loss
    states_batch: bool  # whether the file says the global batch
    duration_s: float  # of all steps

    @property
    def closed_step_s(self) -> float:
        return self.execution.closed_parts.step_s

    @property
    def difference_fraction(self) -> float:
        """How far the closed form is from what was simulated."""
        return self.closed_step_s / self.execution.step_s - 1.0


class Weighed(NamedTuple):
    """The best on a number of chips that was tried for a deadline, and when its run is done."""

    candidate: Chosen
    elapsed_s: float  # expected
    done_s: float | None  # by when nine of ten runs are; None: surely too late
    in_time: bool
    duration_s: float  # of all steps
    cost_usd: float | None = None  # None where nobody prices it
    chip_hours: float | None = None  # that are paid


class OnFabric(NamedTuple):
    """The run on one of several fabrics: its plan with the parts of its network, or why there is none."""

    topology: str
    scenario: Scenario
    plan: TrainingPlan | None
    network: Bill | None = None  # None: no design of parts
    why: str = ""


class TrainingPlan(Plan[Candidate], frozen=True, kw_only=True):
    """The chosen layout of a run on a cluster, the ranking behind it, and what it hangs on."""

    chosen: Chosen
    alternatives: tuple[Lost, ...] = ()
    search: Search
    num_tokens: float
    num_simulated: int  # layouts
    num_asked: int = 0  # chips that there are; some may stay idle
    num_out: int = 0  # of those, chips that have failed
    num_stranded: int = 0  # of those that work, chips beside failed ones that no layout is placed on
    on_all_s: float | None = (
        None  # the run on all of them, where some stay idle and it can be laid out at all
    )
    batch_divides: bool = True  # over all of them
    near_batch: int = 0  # a global batch near to this one that does and is as fast, where this one does not
    hurried: bool = False  # a simpler layout, as fast as can be told, would be late
    fastest_s: float  # the step of the fastest layout, where one that is as fast as can be told was chosen
    deadline_s: float | None = None
    done_s: float | None = (
        None  # by when nine of ten runs are done, simulated; None where nothing hangs on it
    )
    mended: Mended | None = None  # what ends a run that never does, where something was found
    weighed: tuple[Weighed, ...] = ()  # for a deadline: the best on each number of chips, fewest first
    tried: tuple[Tried, ...] = ()  # for a deadline: numbers of chips, fewest first
    in_servers: bool = False  # whether each of those is whole servers of several chips
    changes: tuple[Change, ...] = ()  # one choice of the layout changed
    machines: tuple[Elsewhere, ...] = ()  # the machine changed
    full_bisection: Candidate | None = (
        None  # the same run on a network without narrow places, where it has some
    )
    memory_front: tuple[Candidate, ...] = ()  # layouts that no other beats in both time and memory
    offload: tuple[Line, ...] = ()  # what the chosen layout keeps outside its chips
    chips_front: tuple[OnChips, ...] = ()  # the same run on fewer and on more chips
    present: Present | None = None  # the layout that somebody has, where they say it
    budget_usd: float | None = None  # the most that it may cost
    over: Over | None = None  # it costs more

    @property
    def job(self) -> Job:
        return self.search.job

    @property
    def cluster(self) -> Cluster:
        return self.search.cluster

    @property
    def layout(self) -> Layout:
        return self.chosen.layout

    @property
    def num_chips(self) -> int:
        return self.chosen.num_chips

    @property
    def slower_fraction(self) -> float:
        """How much longer a step takes than with the fastest layout, which is too near to be told apart."""
        return self.step_s / self.fastest_s - 1.0 if self.fastest_s else 0.0

    @property
    def num_idle(self) -> int:
        """Chips that work and that the run is faster without."""
        return max(0, self.num_working - self.num_chips)

    @property
    def num_there(self) -> int:
        """Chips that are paid for: all there are, or those that it takes."""
        return max(self.num_asked, self.num_chips)

    @property
    def num_working(self) -> int:
        """Chips that there are, less those that have failed."""
        return self.num_asked - self.num_out

    @property
    def num_placeable(self) -> int:
        """Chips that work and that layouts are placed on, if not this one."""
        return self.num_working - self.num_stranded

    @property
    def step_s(self) -> float:
        """Of the chosen layout, as simulated."""
        return self.chosen.step_s

    @property
    def closed_step_s(self) -> float:
        return self.chosen.closed_step_s

    @property
    def num_steps(self) -> int:
        return self.job.num_steps(self.num_tokens)

    @property
    def duration_s(self) -> float:
        """Time of all steps; failures, restarts and evaluation are not in it."""
        return self.duration_of(self.chosen)

    @property
    def elapsed_s(self) -> float:
        """The same with failures, restarts and checkpoints, as is expected."""
        return self.part(Goodput).elapsed_s

    @property
    def longer_s(self) -> float | None:
        """What the run takes as its chips are had, where that is longer: on spot, beside other ways."""
        found = self.section(TrainingCost)
        had = None if found is None else found.had
        return had.elapsed_s if had is not None and had.elapsed_s > SAME * self.elapsed_s else None

    def surely_late(self, limit_s: float) -> bool:
        """Whether the steps alone take longer, or so many interruptions make it take far longer than chance alters."""
        often = self.part(Goodput).num_interruptions >= MANY
        return self.duration_s > limit_s or (often and self.elapsed_s > FAR * limit_s)

    @property
    def in_time(self) -> bool:
        """Whether nine of ten runs are done by the deadline."""
        return self.deadline_s is not None and self.done_s is not None and self.done_s <= self.deadline_s

    @property
    def ends(self) -> bool:
        """Whether nine of ten runs are done at all, however long they take."""
        return self.done_s is None or self.done_s < inf

    @property
    def candidates(self) -> tuple[Candidate, ...]:
        """The chosen layout and those that lost, best first."""
        return (self.chosen, *(one.candidate for one in self.alternatives))

    @property
    def twice_the_chips(self) -> Candidate | None:
        """The run on twice the chips, where some layout fits them."""
        wider = (one.candidate for one in self.chips_front)
        return next((one for one in wider if one.num_chips == 2 * self.num_chips), None)

    @property
    def num_in_time(self) -> int:
        """Numbers of chips that were tried for a deadline and keep it."""
        return sum(one.in_time for one in self.weighed)

    @property
    def under_usd(self) -> float:
        """What is left of the budget; below 0 where it is too little."""
        assert self.budget_usd is not None
        return self.budget_usd - (self.part(TrainingCost).cost_usd or 0.0)

    @property
    def spare_s(self) -> float:
        """Time between the end of nine of ten runs and the deadline."""
        assert self.deadline_s is not None
        assert self.done_s is not None
        return self.deadline_s - self.done_s

    @property
    def band_s(self) -> tuple[float, float]:
        """Between which durations eight of ten runs are expected."""
        low, high = self.band
        return self.duration_s * low, self.duration_s * high

    @property
    def narrow_fraction(self) -> float:
        """How much longer the run takes than on a network without narrow places; 0 where there are none."""
        if self.full_bisection is None:
            return 0.0
        return self.step_s / self.full_bisection.step_s - 1.0

    def duration_of(self, candidate: Candidate) -> float:
        """Time of all steps with a candidate [s]."""
        return self.num_steps * candidate.step_s

    @property
    def band(self) -> tuple[float, float]:
        """Between which shares of the predicted step eight of ten measured ones are expected."""
        return step_band(self.job, self.cluster, self.search.framework)

    @property
    def execution(self) -> Execution:
        """A step of the chosen layout, simulated."""
        return self.chosen.execution

    def setup(self, precision: str) -> Setup:
        """The chosen layout on its chips, of a job whose precision is called that."""
        return Setup(
            job=self.job,
            precision=precision,
            cluster=self.cluster,
            layout=self.layout,
            framework=self.search.framework,
            schedule=usual_order(self.layout.vpp),
        )
