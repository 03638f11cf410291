"""How a layout and a number of chips are chosen, with what is simulated replaced by numbers one can follow on paper."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from types import SimpleNamespace
from typing import Any

import msgspec
import numpy as np
import pytest

from datahall.catalog import Catalog
from datahall.catalog.entries.chip import Chip
from datahall.cluster.cluster import Cluster, cluster_of
from datahall.errors import InfeasibleError, ScenarioError, spelled
from datahall.planner.training import choice, dated, deadline, fewer
from datahall.planner.training.candidate import Chosen, closed_form
from datahall.planner.training.choice import TIME, plan_on_chips
from datahall.planner.training.dated import Question
from datahall.planner.training.deadline import plan_by_deadline
from datahall.planner.training.late import too_late
from datahall.planner.training.plan import Lost, TrainingPlan
from datahall.planner.training.trade import OnChips, chips_against_time
from datahall.reliability.sections.goodput import Goodput
from datahall.scenario.sections.deployment import MOST_CHIPS
from datahall.training.layout.layout import Layout
from datahall.training.layout.search import Loss
from datahall.training.layout.space import WIDE, Options
from datahall.training.memory.bookkeeping import bookkeeping_of
from datahall.training.pipeline.execution import Execution
from datahall.training.setup import Machine
from datahall.training.step.framework import Framework, framework
from datahall.training.step.step import Job
from datahall.workload.flops import training_flop_per_token

SHELF = Catalog(user=False)
H100 = SHELF.chip("h100-sxm")
KIT = framework("nemo")
JOB = Job(model=SHELF.model("llama-3.1-8b"), seq=8192, global_batch=64)
SLOWER = Loss(Layout(), True, 0.0, 2.0, "kernels", 1.0)
FEW = Options(micro_batch=(1,), zero=(1,), vpp=(1,), recompute=("none",))


def of(chip: Chip) -> Machine:
    return partial(cluster_of, chip, servers=SHELF.servers())


MACHINE = of(H100)


def test_the_fastest_of_those_simulated_is_chosen_whatever_the_closed_form_ranked_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The closed form's first is simulated at 9 s, its next at 5 s, the last at 7 s."""
    asked: list[Layout] = []

    def simulated(job: Job, cluster: Cluster, layout: Layout, kit: Framework) -> Execution:
        asked.append(layout)
        none: Any = None
        return Execution(
            job=job, cluster=cluster, layout=layout, framework=kit, stragglers=none, plan=none, stages=none,
            closed=none, alone=none, slowest=none, steps_s=np.array([(9.0, 5.0, 7.0)[len(asked) - 1]]), num_simulated=1,
        )  # fmt: skip

    monkeypatch.setattr(choice, "simulate_step", simulated)
    monkeypatch.setattr(choice, "_loss", lambda *_: SLOWER)
    monkeypatch.setattr(choice, "MOST_SIMULATED", 3)
    monkeypatch.setattr(choice, "faster_on", lambda *_, **_on: [])
    plan = plan_on_chips(JOB, MACHINE, 16, 1e9, KIT, options=FEW)
    found = plan.search
    places = found.best(3)
    assert asked == [found.layout(place) for place in places]
    assert places[0] == 0
    chosen = plan.chosen
    assert chosen.place == places[1] > 0
    assert plan.layout == asked[1] == found.layout(places[1])
    assert plan.step_s == 5.0
    # then the other two that were simulated, the faster first, and those that were not
    lost = [one.candidate for one in plan.alternatives]
    assert [(one.place, one.step_s) for one in lost[:2]] == [(places[2], 7.0), (places[0], 9.0)]
    assert all(one.execution is None and one.step_s == one.closed_step_s for one in lost[2:])
    row = found.order[chosen.place]
    assert plan.closed_step_s == float(found.step_s[row])
    assert chosen.headroom_bytes == float(found.memory.headroom_bytes[row])
    assert chosen.memory_bytes == float(found.memory.total_bytes[row])
    # 1e9 tokens in steps of 64 · 8,192: 1,907.3, so 1,908 steps of 5 s on 16 chips
    assert plan.num_steps == 1908
    assert plan.duration_s == 1908 * 5
    run = plan.execution
    assert run.tokens_per_s == pytest.approx(64 * 8192 / 5)
    flop = float(training_flop_per_token(JOB.model, 8192))
    assert run.mfu_fraction == pytest.approx(64 * 8192 / 5 * flop / (16 * H100.peak("bf16")))
    twice = msgspec.structs.replace(run, steps_s=np.array([10.0]))
    assert twice.mfu_fraction == pytest.approx(run.mfu_fraction / 2)
    assert msgspec.structs.replace(run, cluster=MACHINE(64)).mfu_fraction == pytest.approx(
        run.mfu_fraction / 4
    )


def test_layouts_are_simulated_while_the_closed_form_promises_a_faster_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Every cut takes 1.2 times what the closed form says: those that promise less than the first took are tried."""
    found = plan_on_chips(JOB, MACHINE, 16, 1e9, KIT, options=FEW).search
    promised = {found.layout(place): float(found.step_s[found.order[place]]) for place in found.best(99)}
    monkeypatch.setattr(
        choice, "simulate_step", lambda *asked: SimpleNamespace(step_s=1.2 * promised[asked[2]])
    )
    monkeypatch.setattr(choice, "_loss", lambda *_: SLOWER)
    first_s = min(promised.values())
    hopeful = sum(closed_s < 1.2 * first_s for closed_s in promised.values())
    assert 2 < hopeful < len(promised)
    assert plan_on_chips(JOB, MACHINE, 16, 1e9, KIT, options=FEW, num_simulated=1).num_simulated == hopeful
    monkeypatch.setattr(choice, "MOST_SIMULATED", 2)
    assert plan_on_chips(JOB, MACHINE, 16, 1e9, KIT, options=FEW, num_simulated=1).num_simulated == 2


def test_of_layouts_too_near_to_tell_one_that_is_in_time_is_taken() -> None:
    """The second takes 3 % longer and leaves more free: it is taken unless it is late, and again where both are.  One
    that takes 4 % longer can be told: half of the measured pairs are within 3.5 % of what is predicted of them."""
    found: Any = SimpleNamespace(
        order=[0, 1],
        space=SimpleNamespace(tp=[1, 1]),
        cluster=SimpleNamespace(num_domain=8),
        memory=SimpleNamespace(headroom_bytes=[5.0, 10.0], limit_bytes=100.0),
    )
    runs: Any = {0: SimpleNamespace(step_s=1.0), 1: SimpleNamespace(step_s=1.03)}
    both = choice.Simulated(found, runs)
    assert [both.simplest(within_s) for within_s in (float("inf"), 1.03, 1.02, 1.0, 0.9)] == [1, 1, 0, 0, 1]
    runs[1] = SimpleNamespace(step_s=1.04)
    assert [both.simplest(within_s) for within_s in (float("inf"), 1.04, 0.9)] == [0, 0, 0]


@pytest.mark.parametrize(
    ("slower_free", "faster_free", "freer_is_taken"),
    [(0.1, 0.05, True), (0.2, 0.19, True), (0.9, 0.19, True), (0.9, 0.2, False), (0.9, 0.5, False)],
)
def test_free_memory_is_worth_time_up_to_a_fifth_of_it(
    slower_free: float, faster_free: float, freer_is_taken: bool
) -> None:
    """Of two layouts that cannot be told apart; what is more than a fifth makes none safer."""
    found: Any = SimpleNamespace(
        order=[0, 1],
        space=SimpleNamespace(tp=[1, 1]),
        cluster=SimpleNamespace(num_domain=8),
        memory=SimpleNamespace(headroom_bytes=[80e9 * faster_free, 80e9 * slower_free], limit_bytes=80e9),
    )
    runs: Any = {0: SimpleNamespace(step_s=1.0), 1: SimpleNamespace(step_s=1.01)}
    assert choice.Simulated(found, runs).simplest(float("inf")) == int(freer_is_taken)


@pytest.mark.parametrize("within_s", [float("inf"), 0.1, 1.1])
def test_all_chips_are_taken_where_they_are_faster_in_time_or_not(
    monkeypatch: pytest.MonkeyPatch, within_s: float
) -> None:
    """On 16 chips every layout takes 1 s, on the 12 that are offered instead 1.2 s."""
    books = bookkeeping_of(KIT)
    fewer = choice.ranked(JOB, MACHINE, 12, KIT, books, FEW)
    monkeypatch.setattr(choice, "faster_on", lambda *_, **_on: [fewer])
    monkeypatch.setattr(choice, "_loss", lambda *_: SLOWER)
    monkeypatch.setattr(
        choice,
        "simulate_step",
        lambda *asked: SimpleNamespace(step_s=1.0 if asked[1].num_chips == 16 else 1.2),
    )
    plan = choice.best_of(JOB, MACHINE, 16, 1e9, KIT, books, FEW, within_s=within_s)
    assert (plan.num_chips, plan.step_s) == (16, 1.0)


def test_of_fewer_chips_those_are_taken_on_which_the_run_is_simulated_faster(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """In closed form 12 chips come before 8; simulated, a step takes 0.9 s on the 12, 0.7 s on the 8 and 1 s on all."""
    books = bookkeeping_of(KIT)
    offered = [choice.ranked(JOB, MACHINE, count, KIT, books, FEW) for count in (12, 8)]
    promised_s = [float(found.step_s[found.order[0]]) for found in offered]
    assert promised_s == sorted(promised_s)
    monkeypatch.setattr(choice, "faster_on", lambda *_, **_on: offered)
    monkeypatch.setattr(choice, "_loss", lambda *_: SLOWER)
    step_s = {16: 1.0, 12: 0.9, 8: 0.7}
    monkeypatch.setattr(
        choice, "simulate_step", lambda *asked: SimpleNamespace(step_s=step_s[asked[1].num_chips])
    )
    plan = choice.best_of(JOB, MACHINE, 16, 1e9, KIT, books, FEW)
    assert (plan.num_chips, plan.step_s, plan.num_asked) == (8, 0.7, 16)
    assert plan.on_all_s == plan.num_steps * 1.0


def searched_on(
    monkeypatch: pytest.MonkeyPatch,
    plain_s: dict[int, float],
    whole_s: dict[int, float],
    than_s: float,
    above: int = 0,
) -> list[int]:
    """Numbers of chips on which a run is found to be faster, with the steps of plain and of all layouts given."""
    monkeypatch.setattr(fewer, "fewer", lambda *_: list(plain_s))
    monkeypatch.setattr(fewer, "built", lambda _machine, count: count)

    def searched(_job: Job, cluster: int, _kit: object, *, options: Options, **_books: object) -> Any:
        step_s = (whole_s if options == WIDE else plain_s)[cluster]
        fits = step_s < float("inf")
        return SimpleNamespace(cluster=cluster, step_s=[0.0, step_s], order=[1], num_fitting=int(fits))

    monkeypatch.setattr(fewer, "search", searched)
    books = bookkeeping_of(KIT)
    offered: list[Any] = [*fewer.faster_on(JOB, MACHINE, 16, KIT, books, WIDE, than_s=than_s, above=above)]
    return [found.cluster for found in offered]


def test_fewer_chips_are_offered_the_fastest_first_by_the_layouts_that_would_be_used(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """By plain layouts 15 chips seem the fastest and 12 the slowest; with every layout it is the other way."""
    plain_s = {15: 1.00, 14: 1.01, 13: 1.02, 12: 1.03}
    whole_s = {15: 0.98, 14: 0.97, 13: 0.96, 12: 0.95}
    assert searched_on(monkeypatch, plain_s, whole_s, than_s=2.0) == [12, 13, 14, 15]
    assert searched_on(monkeypatch, plain_s, whole_s, than_s=0.945) == [
        12,
        13,
    ]  # two per cent are no difference
    assert searched_on(monkeypatch, plain_s, whole_s, than_s=2.0, above=13) == [14, 15]


def test_fewer_chips_whose_plain_layouts_are_far_behind_are_not_searched(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Another layout saves a tenth at most, so 1.2 s come not below 1 s; what does not fit comes nowhere."""
    plain_s = {15: 1.2, 14: 1.1, 13: float("inf")}
    assert searched_on(monkeypatch, plain_s, dict.fromkeys(plain_s, 0.5), than_s=1.0) == [14]


def test_of_fewer_chips_the_most_promising_are_searched(monkeypatch: pytest.MonkeyPatch) -> None:
    plain_s = {count: 1.0 - 0.01 * count for count in range(4, 16)}
    found = searched_on(monkeypatch, plain_s, plain_s, than_s=1.0)
    assert found == sorted(found, reverse=True)
    assert found[0] == 15
    assert 1 < len(found) < len(plain_s)
    assert len(found) == 15 - found[-1] + 1  # none is left out between them


def closed(num_chips: int = 16, options: Options = FEW, num_tokens: float = 1e9) -> TrainingPlan:
    """A plan of which nothing was simulated."""
    plan = plan_on_chips(JOB, MACHINE, num_chips, num_tokens, KIT, options=options, num_simulated=1)
    chosen: Any = closed_form(plan.search, 0)
    return TrainingPlan(
        objective=TIME,
        chosen=chosen,
        search=plan.search,
        num_tokens=num_tokens,
        num_simulated=0,
        fastest_s=0.0,
    )


def test_what_is_not_simulated_is_taken_in_closed_form() -> None:
    plan = closed()
    assert plan.chosen.place == 0
    assert plan.layout == plan.search.layout(0)
    assert plan.step_s == plan.closed_step_s == float(plan.search.step_s.min())


def test_what_a_plan_says_of_its_candidates() -> None:
    """Half the step on twice the chips: half as long, as many chip-hours."""
    plan = closed(num_tokens=64 * 8192 * 3600.0)  # 3,600 steps
    fast: Any = msgspec.structs.replace(plan.chosen, closed_step_s=2.0, num_chips=16)
    faster = msgspec.structs.replace(plan.chosen, closed_step_s=1.0, num_chips=32)
    front = tuple(
        OnChips(candidate=one, duration_s=1.0, chip_hours=1.0, beaten=False) for one in (fast, faster)
    )
    plan = msgspec.structs.replace(
        plan,
        chosen=fast,
        alternatives=(Lost(faster, loss=SLOWER),),
        deadline_s=10_000.0,
        done_s=7300.0,  # 100 s of interruptions
        chips_front=front,
    )
    assert plan.candidates == (fast, faster)
    assert (plan.duration_s, plan.duration_of(faster)) == (7200.0, 3600.0)
    assert plan.spare_s == 2700.0
    assert plan.in_time
    assert not msgspec.structs.replace(plan, done_s=10_000.1).in_time
    assert plan.twice_the_chips == faster
    assert msgspec.structs.replace(plan, chips_front=front[:1]).twice_the_chips is None
    low_s, high_s = plan.band_s
    assert (low_s / 7200.0, high_s / 7200.0) == pytest.approx(KIT.band)  # an H100 was measured
    assert fast.difference_fraction is None
    run = SimpleNamespace(step_s=4.0)
    assert msgspec.structs.replace(fast, execution=run).difference_fraction == -0.5


def test_a_step_that_is_only_begun_is_a_whole_step() -> None:
    plan = closed()
    for num_tokens, expected in ((1.0, 1), (64 * 8192.0, 1), (64 * 8192.0 + 1, 2)):
        assert msgspec.structs.replace(plan, num_tokens=num_tokens).num_steps == expected


def test_halves_and_doubles_of_the_chips_are_weighed() -> None:
    plan = closed()
    weighed = chips_against_time(plan.search, MACHINE, plan.chosen, plan.num_steps)
    assert [one.candidate.num_chips for one in weighed] == [4, 8, 16, 32]
    assert [one.chosen for one in weighed] == [False, False, True, False]
    assert weighed[2].candidate is plan.chosen
    for one in weighed:
        assert one.duration_s == 1908 * one.candidate.closed_step_s  # the same 1e9 tokens on each
        assert one.chip_hours == pytest.approx(one.duration_s / 3600 * one.candidate.num_chips)
    few = closed(2, Options())  # half a chip is none, and one does not hold the model; four do
    fewer = chips_against_time(few.search, MACHINE, few.chosen, few.num_steps)
    assert [one.candidate.num_chips for one in fewer] == [2, 4]


@pytest.mark.parametrize(
    ("domain", "first"),
    [
        (8, [1, 2, 4, 8, 16, 24, 32, 48, 64, 96]),
        (72, [1, 2, 4, 8, 16, 24, 32, 48, 64, 96]),
        (4, [1, 2, 4, 8, 12, 16, 24]),
        (1, [1, 2, 3, 4, 6, 8, 12]),
    ],
)
def test_clusters_are_whole_servers(domain: int, first: list[int]) -> None:
    chip = msgspec.structs.replace(H100, num_scale_up_domain=domain)
    counts = list(deadline._counts(of(chip)(1)))
    assert counts[: len(first)] == first
    assert max(counts) <= 3 * 2**19
    assert 2**20 in counts


class MadeUp(Goodput, frozen=True, kw_only=True, dict=True):
    """Interruptions with which a run is expected to last so long."""

    lasts_s: float

    @property
    def elapsed_s(self) -> float:
        return self.lasts_s

    @property
    def num_interruptions(self) -> float:
        return 0.0


def durations(monkeypatch: pytest.MonkeyPatch, known: Mapping[int, float | None]) -> list[int]:
    """Plans that last as told by their number of chips; None: nothing fits, and beyond the last: nothing divides.

    Returned are the numbers of chips that the search tries; what is tried for a hint comes after it.
    """
    tried: list[int] = []

    def tried_on(num_chips: int) -> None:
        tried.append(num_chips)
        if num_chips not in known:
            raise ScenarioError("nothing divides")
        if known[num_chips] is None:
            raise InfeasibleError("nothing fits", hint="more chips")

    def planned(
        _job: Job, _machine: Machine, num_chips: int, num_tokens: float, *_: object, **_limits: object
    ) -> TrainingPlan:
        tried_on(num_chips)
        lasts_s = known[num_chips]
        assert lasts_s is not None
        none: Any = None
        step_s = lasts_s / JOB.num_steps(num_tokens)
        execution: Any = SimpleNamespace(step_s=step_s)
        chosen = Chosen(
            layout=none, num_chips=num_chips, place=0, memory_bytes=0.0, headroom_bytes=0.0,
            closed_step_s=step_s, execution=execution,
        )  # fmt: skip
        search: Any = SimpleNamespace(job=JOB)
        return TrainingPlan(
            objective=TIME,
            chosen=chosen,
            search=search,
            num_tokens=num_tokens,
            num_simulated=0,
            fastest_s=chosen.step_s,
        )

    def refused(*asked: Any) -> InfeasibleError:
        searched = len(tried)
        error = too_late(*asked)
        del tried[searched:]
        return error

    monkeypatch.setattr(dated, "best_of", planned)
    monkeypatch.setattr(deadline, "too_late", refused)
    monkeypatch.setattr(deadline, "with_reasons", lambda plan: plan)
    return tried


def by_deadline(
    deadline_s: float,
    num_tokens: float = 1.0,
    most_chips: int = MOST_CHIPS,
    *,
    done: dict[int, float] | None = None,
    expected: dict[int, float] | None = None,
) -> TrainingPlan:
    """The plan, with times on so many chips by which nine of ten runs are done, and that are expected.

    Where none are given, nothing interrupts: both are the time of the steps.
    """

    def operated(plan: TrainingPlan) -> TrainingPlan:
        run: Any = None
        lasts_s = (expected or {}).get(plan.num_chips, plan.duration_s)
        return plan.with_section(
            MadeUp(run=run, work_s=plan.duration_s, storage=run, rates=run, lasts_s=lasts_s)
        )

    asked = Question(
        job=JOB,
        machine=MACHINE,
        num_tokens=num_tokens,
        framework=KIT,
        operated=operated,
        done_by=lambda plan: (done or {}).get(plan.num_chips, plan.duration_s),
        mended=lambda *_: None,
    )
    return plan_by_deadline(asked, deadline_s, most_chips)


def test_the_first_cluster_in_time_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    tried = durations(monkeypatch, {1: None, 2: None, 4: 90.0, 8: 50.0, 16: 30.0, 24: 20.0})
    plan = by_deadline(30.0)
    assert plan.num_chips == 16  # 30 s by the deadline of 30 s
    assert [one.candidate.num_chips for one in plan.weighed] == [4, 8, 16]
    assert [(one.what, one.why, one.hint) for one in plan.refusals] == [
        ("1 chip", "nothing fits", "more chips"),
        ("2 chips", "nothing fits", "more chips"),
    ]
    assert tried == [1, 2, 4, 8, 16]
    assert plan.deadline_s == 30.0


def test_in_time_is_when_nine_of_ten_runs_are_done(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither the steps alone nor what is expected says so; 30 s of nine of ten runs are by the deadline of 30 s."""
    known = {4: 90.0, 8: 50.0, 16: 25.0, 24: 20.0}
    tried = durations(monkeypatch, known)
    assert by_deadline(30.0, done={16: 30.0}, expected={16: 31.0}).num_chips == 16
    tried.clear()
    plan = by_deadline(30.0, done={16: 30.01, 24: 28.0}, expected={16: 29.0, 24: 27.0})
    assert (plan.num_chips, plan.spare_s, plan.elapsed_s) == (24, 2.0, 27.0)
    assert [(one.done_s, one.in_time) for one in plan.weighed] == [
        (None, False),  # their steps alone are late
        (None, False),
        (30.01, False),
        (28.0, True),
    ]


def test_clusters_that_could_not_do_it_at_their_peak_are_not_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tokens for as much work as eight chips do in 1,000 s at their peak, and a little more."""
    tried = durations(monkeypatch, dict.fromkeys((8, 16, 24), 900.0))
    flop = float(training_flop_per_token(JOB.model, 8192))
    tokens = 8 * 1000.0 * H100.peak("bf16") / flop
    assert by_deadline(1000.0, 0.999 * tokens).num_chips == 8
    assert by_deadline(1000.0, 1.001 * tokens).num_chips == 16
    assert tried == [8, 16]


def test_the_search_ends_where_more_chips_no_longer_help(monkeypatch: pytest.MonkeyPatch) -> None:
    """None of the plans on 8, 16 and 24 chips is faster than that on 4; 32 chips would have been."""
    tried = durations(monkeypatch, {2: 70.0, 4: 60.0, 8: 60.0, 16: 60.0, 24: 70.0, 32: 1.0})
    with pytest.raises(InfeasibleError, match="the fastest, 4 chips"):
        by_deadline(30.0)
    assert tried == [1, 2, 4, 8, 16, 24]
    durations(monkeypatch, {2: 70.0, 4: 60.0, 8: 60.0, 16: 60.1, 24: 59.9, 32: 1.0})
    assert by_deadline(30.0).num_chips == 32
    durations(monkeypatch, {2: 60.0, 4: 60.0, 8: 60.0, 16: 1.0})  # two before the third are too few to tell
    assert by_deadline(30.0).num_chips == 16


def test_between_the_first_in_time_and_the_one_before_fewer_are_looked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """64 chips are in time and 48 are not; of the servers between them 56 are."""
    known = {32: 60.0, 48: 40.0, 56: 29.0, 64: 20.0}
    tried = durations(monkeypatch, known)
    plan = by_deadline(30.0)
    assert plan.num_chips == 56
    assert [one.candidate.num_chips for one in plan.weighed] == [32, 48, 56, 64]
    assert tuple(one.num_chips for one in plan.tried) == tuple(sorted(tried))
    durations(monkeypatch, known | {56: 30.01})
    assert by_deadline(30.0).num_chips == 64
    durations(monkeypatch, {32: 60.0, 48: 40.0, 64: 20.0})  # nothing divides 56
    assert by_deadline(30.0).num_chips == 64


def test_the_search_halves_towards_the_fewest(monkeypatch: pytest.MonkeyPatch) -> None:
    """Time goes with 1/chips: 1,024 are late, 1,536 in time, and 1,200 would be just in time."""
    known = {count: 1200.0 * 30.0 / count for count in range(8, 2049, 8)}
    tried = durations(monkeypatch, known)
    plan = by_deadline(30.0)
    assert tried[-6:] == [1024, 1536, 1280, 1152, 1216, 1184]
    assert plan.num_chips == 1216  # within 512/2⁴ = 32 of the fewest


def test_all_the_chips_that_there_are_say_how_long_they_take(monkeypatch: pytest.MonkeyPatch) -> None:
    durations(monkeypatch, {32: 60.0, 40: 50.0})
    with pytest.raises(
        InfeasibleError,
        match="on the 40 chips that there are it takes 50 s of steps, nine of ten runs 50 s with interruptions",
    ):
        by_deadline(30.0, most_chips=40)
    tokens = 1000 * 30.0 * H100.peak("bf16") / float(training_flop_per_token(JOB.model, 8192))
    tried = durations(monkeypatch, {40: 5000.0})  # a thousand would not be enough at their peak
    with pytest.raises(InfeasibleError, match="on the 40 chips that there are it takes"):
        by_deadline(30.0, tokens, most_chips=40)
    assert tried == [40]
    durations(monkeypatch, {32: 60.0, 40: 20.0})
    assert by_deadline(30.0, most_chips=40).num_chips == 40


def test_the_search_ends_where_the_batch_feeds_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """64 sequences on domains of eight: beyond 512 chips a cluster that divides nothing ends it."""
    tried = durations(monkeypatch, {1: 90.0, 2: 80.0})
    with pytest.raises(InfeasibleError, match="the fastest, 2 chips"):
        by_deadline(30.0)
    assert max(tried) == 768
    tried = durations(monkeypatch, {})
    with pytest.raises(InfeasibleError, match="nothing divides"):
        by_deadline(30.0)
    assert max(tried) > 2**19  # nothing ran at all: every size is tried


def test_the_nearest_chips_that_divide_are_named() -> None:
    """96 are three stages by 32, 100 are 25 stages by four; 98 and 99 would take more stages than 32 layers."""
    with pytest.raises(ScenarioError, match="no layout") as caught:
        choice.ranked(JOB, MACHINE, 97, KIT, bookkeeping_of(KIT), WIDE)
    assert "nearest that divide: chips=96 or chips=100;" in spelled(caught.value.hint)
