"""How a plan is chosen, with what is played replaced by numbers one can follow on paper."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from datahall.workload.traffic.options import traffic_from

from datahall.catalog import Catalog
from datahall.errors import InfeasibleError, ScenarioError
from datahall.inference.closed_form.steady_state import Load
from datahall.planner import serve, train
from datahall.planner.serve import (
    Choice,
    Confirmed,
    Demand,
    ServingPlan,
    candidates,
    demand_of_users,
    plan_serving,
)
from datahall.planner.train import TrainingPlan, chips_against_time, plan_by_deadline, plan_on_chips
from datahall.scenario.sections.promise import Promise
from datahall.training.layout.layout import Layout
from datahall.training.layout.space import Options
from datahall.training.step.framework import framework
from datahall.training.step.step import Job
from datahall.workload.flops import training_flop_per_token
from datahall.workload.precision import BF16, Precision

SHELF = Catalog(user=False)
H100 = SHELF.chip("h100-sxm")
KIT = framework("nemo")
JOB = Job(model=SHELF.model("llama-3.1-8b"), seq=8192, global_batch=64)
FEW = Options(micro_batch=(1,), zero=(1,), vpp=(1,), recompute=("none",))


def test_the_fastest_of_those_played_is_chosen_whatever_the_closed_form_ranked_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The closed form's first is played at 9 s, its next at 5 s, the last at 7 s."""
    asked: list[Layout] = []

    def played(_job: Job, _cluster: object, layout: Layout, _kit: object) -> SimpleNamespace:
        asked.append(layout)
        return SimpleNamespace(step_s=(9.0, 5.0, 7.0)[len(asked) - 1])

    monkeypatch.setattr(train, "simulate_step", played)
    plan = plan_on_chips(JOB, H100, 16, 1e9, KIT, options=FEW)
    places = list(plan.played)
    assert len(places) == 3
    assert places[0] == 0
    assert plan.place == places[1] > 0
    assert plan.layout == asked[1] == plan.search.layout(places[1])
    assert plan.step_s == 5.0
    assert plan.closed_step_s == float(plan.search.step_s[plan.search.order[plan.place]])
    row = plan.search.order[plan.place]
    assert plan.headroom_bytes == float(plan.search.memory.headroom_bytes[row])
    assert plan.total_bytes == float(plan.search.memory.total_bytes[row])
    # 1e9 tokens in steps of 64 · 8,192: 1,907.3, so 1,908 steps of 5 s on 16 chips
    assert plan.num_steps == 1908
    assert plan.duration_s == 1908 * 5
    assert plan.chip_hours == pytest.approx(1908 * 5 / 3600 * 16)
    assert plan.tokens_per_s == pytest.approx(64 * 8192 / 5)
    flop = float(training_flop_per_token(JOB.model, 8192))
    assert plan.mfu_fraction == pytest.approx(64 * 8192 / 5 * flop / (16 * H100.peak("bf16")))
    assert plan.mfu_of(10.0) == pytest.approx(plan.mfu_fraction / 2)


def closed(num_chips: int = 16, options: Options = FEW) -> TrainingPlan:
    """A plan of which nothing was played."""
    plan = plan_on_chips(JOB, H100, num_chips, 1e9, KIT, options=options, num_played=1)
    return TrainingPlan(search=plan.search, num_tokens=1e9)


def test_what_is_not_played_is_taken_in_closed_form() -> None:
    plan = closed()
    assert plan.place == 0
    assert plan.step_s == plan.closed_step_s == float(plan.search.step_s.min())


def test_halves_and_doubles_of_the_chips_are_weighed() -> None:
    plan = closed()
    weighed = chips_against_time(plan, halvings=1, doublings=1)
    assert [one.num_chips for one in weighed] == [8, 16, 32]
    assert weighed[1] is plan
    assert all(one.num_tokens == 1e9 for one in weighed)
    few = closed(2, Options())  # half a chip is none, and one does not hold the model
    assert [one.num_chips for one in chips_against_time(few, halvings=2, doublings=0)] == [2]


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
    counts = list(train._counts(chip))
    assert counts[: len(first)] == first
    assert max(counts) <= 3 * 2**19
    assert 2**20 in counts


def durations(monkeypatch: pytest.MonkeyPatch, known: dict[int, float | None]) -> list[int]:
    """Plans that last as told by their number of chips; None: nothing fits, and beyond the last: nothing divides."""
    tried: list[int] = []

    def planned(_job: Job, _chip: object, num_chips: int, *_: object, **__: object) -> SimpleNamespace:
        tried.append(num_chips)
        if num_chips not in known:
            raise ScenarioError("nothing divides")
        if known[num_chips] is None:
            raise InfeasibleError("nothing fits", hint="more chips")
        return SimpleNamespace(num_chips=num_chips, duration_s=known[num_chips])

    monkeypatch.setattr(train, "plan_on_chips", planned)
    return tried


def by_deadline(deadline_s: float, num_tokens: float = 1.0) -> train.DeadlinePlan:
    return plan_by_deadline(JOB, H100, deadline_s, num_tokens, KIT)


def test_the_first_cluster_in_time_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    tried = durations(monkeypatch, {1: None, 2: None, 4: 90.0, 8: 50.0, 16: 30.0, 24: 20.0})
    plan = by_deadline(30.0)
    assert plan.chosen.num_chips == 16  # 30 s by the deadline of 30 s
    assert [one.num_chips for one in plan.weighed] == [4, 8, 16]
    assert tried == [1, 2, 4, 8, 16]
    assert plan.deadline_s == 30.0


def test_clusters_that_could_not_do_it_at_their_peak_are_not_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tokens for as much work as eight chips do in 1,000 s at their peak, and a little more."""
    tried = durations(monkeypatch, dict.fromkeys((8, 16, 24), 900.0))
    flop = float(training_flop_per_token(JOB.model, 8192))
    tokens = 8 * 1000.0 * H100.peak("bf16") / flop
    assert by_deadline(1000.0, 0.999 * tokens).chosen.num_chips == 8
    assert by_deadline(1000.0, 1.001 * tokens).chosen.num_chips == 16
    assert tried == [8, 16]


def test_the_search_ends_where_more_chips_no_longer_help(monkeypatch: pytest.MonkeyPatch) -> None:
    """The plan on 24 chips is no faster than any of the three before it; 32 chips would have been."""
    tried = durations(monkeypatch, {2: 70.0, 4: 60.0, 8: 60.0, 16: 60.0, 24: 70.0, 32: 1.0})
    with pytest.raises(InfeasibleError, match="the fastest, 4 chips"):
        by_deadline(30.0)
    assert tried == [1, 2, 4, 8, 16, 24]
    tried = durations(monkeypatch, {2: 70.0, 4: 60.0, 8: 60.0, 16: 60.1, 24: 60.05, 32: 1.0})
    assert by_deadline(30.0).chosen.num_chips == 32


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
    with pytest.raises(ScenarioError, match="no layout") as caught:
        plan_on_chips(JOB, H100, 97, 1e9, KIT)
    assert "nearest chips that divide: 64;" in caught.value.hint


CHAT = Load(prompt=500.0, output=250.0)
SLO = Promise(ttft_s=1.0, tpot_s=0.05)


class Held(msgspec.Struct):
    """A replica of so many chips that carries a rate, and is slower the more it carries."""

    num_chips: int
    rate_per_s: float
    name: str = "h100"

    @property
    def replica(self) -> SimpleNamespace:
        return SimpleNamespace(num_chips=self.num_chips, chip=SimpleNamespace(name=self.name))

    @property
    def price(self) -> SimpleNamespace:
        return SimpleNamespace(table=None)

    def at(self, rate_per_s: float) -> SimpleNamespace:
        return SimpleNamespace(tpot_s=0.01 * rate_per_s, rate_per_s=rate_per_s)


def choice(num_replicas: int = 10, num_chips: int = 2, rate: float = 90.0, name: str = "h100") -> Choice:
    carried: Any = Held(num_chips, 12.0, name)
    demand = Demand(load=CHAT, slo=SLO, rate_per_s=rate)
    return Choice(carried=carried, precision="bf16", num_replicas=num_replicas, demand=demand)


def test_figures_of_a_choice() -> None:
    """Ten replicas of two chips that carry 12 a second each, asked for 90."""
    one = choice()
    assert one.num_chips == 20
    assert one.state.rate_per_s == 9
    assert one.headroom_fraction == pytest.approx(120 / 90 - 1)
    assert one.output_tokens_per_s == pytest.approx(90 * 250 / 20)


def test_users_pause_between_answers() -> None:
    """An answer of 250 tokens takes 12.5 s to read, and 7.5 s pass before the next."""
    assert demand_of_users(400, CHAT, SLO, think_s=7.5).rate_per_s == 20
    assert demand_of_users(400, CHAT, SLO).rate_per_s == 32
    assert demand_of_users(400, CHAT, SLO).users == 400
    with pytest.raises(ScenarioError, match="users need a pace"):
        demand_of_users(400, CHAT, Promise(ttft_s=1.0))


@pytest.mark.parametrize(
    ("stable", "good", "keeps"), [(True, SLO.percentile, True), (True, 0.5, False), (False, 1.0, False)]
)
def test_a_promise_is_kept_by_a_stable_run_with_enough_good_requests(
    stable: bool, good: float, keeps: bool
) -> None:
    run: Any = SimpleNamespace(stable=stable, good_fraction=good)
    assert Confirmed(choice=choice(), run=run, num_played=4, num_added=0).keeps is keeps


def played_until(monkeypatch: pytest.MonkeyPatch, enough: int) -> list[int]:
    """Runs that keep the promise from so many replicas on."""
    tried: list[int] = []

    def played(one: Choice, _traffic: object, _headroom: float, added: int, _seed: int) -> Confirmed:
        tried.append(added)
        count = one.num_replicas + added
        run: Any = SimpleNamespace(stable=True, good_fraction=1.0 if count >= enough else 0.0)
        larger = msgspec.structs.replace(one, num_replicas=count)
        return Confirmed(choice=larger, run=run, num_played=4, num_added=added)

    monkeypatch.setattr(serve, "_played", played)
    return tried


TRAFFIC = traffic_from(rate=1)


@pytest.mark.parametrize(("replicas", "step"), [(1, 1), (10, 1), (40, 2), (100, 5)])
def test_the_fewest_steps_that_keep_the_promise_are_added(
    monkeypatch: pytest.MonkeyPatch, replicas: int, step: int
) -> None:
    """Up to twice the replicas and a step; each step is a twentieth of them."""
    most = replicas // step + 1
    for needed in range(most + 3):
        tried = played_until(monkeypatch, replicas + needed * step)
        found = serve.confirm(choice(replicas), TRAFFIC)
        assert found.keeps == (needed <= most)
        assert found.num_added == step * min(needed, most)
        assert found.choice.num_replicas == replicas + found.num_added
        assert len(tried) <= 2 * most.bit_length() + 2


def test_a_rival_is_followed_as_far_as_its_chips_stay_below(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two chips a replica and below 30 chips: five more than ten replicas, and none where ten are too many."""
    tried = played_until(monkeypatch, 999)
    assert serve.confirm(choice(), TRAFFIC, below=30).num_added == 5
    assert max(tried) == 5
    tried = played_until(monkeypatch, 999)
    assert serve.confirm(choice(), TRAFFIC, below=19).num_added == 0
    assert tried == [0]
    played_until(monkeypatch, 13)
    assert serve.confirm(choice(), TRAFFIC, below=30).num_added == 3


def confirmed_as(monkeypatch: pytest.MonkeyPatch, takes: dict[int, int]) -> list[tuple[int, int]]:
    """Choices by their replicas: how many each takes when played; 0: never enough."""
    asked: list[tuple[int, int]] = []

    def confirm(one: Choice, *_: object, below: int = 0, **__: object) -> Confirmed:
        asked.append((one.num_replicas, below))
        count = takes[one.num_replicas]
        run: Any = SimpleNamespace(stable=count > 0, good_fraction=1.0)
        larger = msgspec.structs.replace(one, num_replicas=count or one.num_replicas)
        return Confirmed(choice=larger, run=run, num_played=4, num_added=0)

    monkeypatch.setattr(serve, "confirm", confirm)
    return asked


def plan(choices: list[Choice], others: list[Choice]) -> ServingPlan:
    return ServingPlan(
        demand=choices[0].demand,
        choices=tuple(choices),
        others=tuple(others),
        refused=(),
        headroom_fraction=0.1,
    )


def test_rivals_are_played_while_they_could_take_fewer_chips(monkeypatch: pytest.MonkeyPatch) -> None:
    """The best takes 16 replicas instead of 10; its rivals of 11 and 12 replicas take 14 and 15, that of 16 is too
    many before it is played, and rivals on other chips are another matter."""
    asked = confirmed_as(monkeypatch, {10: 16, 11: 14, 12: 15, 13: 13, 16: 16})
    others = [choice(11), choice(13, name="h200"), choice(12), choice(16)]
    (found,) = serve.confirmed(plan([choice(10)], others), TRAFFIC)
    assert found.choice.num_replicas == 14
    assert asked == [(10, 0), (11, 32), (12, 28)]


def test_a_rival_that_does_not_keep_the_promise_is_no_rival(monkeypatch: pytest.MonkeyPatch) -> None:
    confirmed_as(monkeypatch, {10: 16, 11: 0, 12: 16})
    (found,) = serve.confirmed(plan([choice(10)], [choice(11), choice(12)]), TRAFFIC)
    assert found.choice.num_replicas == 16


def test_kept_promises_come_first_and_then_fewer_chips(monkeypatch: pytest.MonkeyPatch) -> None:
    confirmed_as(monkeypatch, {10: 0, 11: 15, 12: 12})
    found = serve.confirmed(plan([choice(10), choice(11, name="a"), choice(12, name="b")], []), TRAFFIC)
    assert [one.choice.num_replicas for one in found] == [12, 15, 10]


@pytest.mark.parametrize(("turns", "added", "replicas"), [(1, 0, 10), (4, 2, 10), (1, 0, 3)])
def test_a_few_replicas_are_played_under_their_share(
    monkeypatch: pytest.MonkeyPatch, turns: int, added: int, replicas: int
) -> None:
    """90 a second with a tenth left free is 100; four of twelve replicas get a third of it, three of three all."""
    seen: dict[str, Any] = {}

    def simulated(fleet: Any, requests: Any, **options: Any) -> SimpleNamespace:
        seen.update(fleet=fleet, requests=requests, **options)
        return SimpleNamespace(stable=True, good_fraction=1.0)

    monkeypatch.setattr(serve, "simulate_serving", simulated)
    monkeypatch.setattr(serve, "Fleet", lambda pools: pools)
    monkeypatch.setattr(serve, "Pool", lambda **fields: fields)
    monkeypatch.setattr(serve, "generate", lambda traffic, _seed: traffic)
    found = serve._played(choice(replicas), traffic_from(users=50, turns=turns), 0.1, added, 7)
    count, num = replicas + added, min(4, replicas)
    share = 100 * num / count
    assert (found.num_played, found.num_added, found.choice.num_replicas) == (num, added, count)
    asked = seen["requests"]
    assert asked.arrivals.rate_per_s == pytest.approx(share / turns)
    assert asked.users is None
    stay_s = 0.01 * 90 / replicas * 250  # a token each 10 ms for each request a second
    assert asked.num_requests == max(3000, int(10 * share * stay_s))
    assert seen["warmup_s"] == pytest.approx(0.1 * asked.num_requests / share)
    assert (seen["seed"], seen["slo"]) == (7, SLO)
    assert seen["fleet"][0]["count"] == num


def groups(
    model: str, chip: str, tp: int = 0, precision: Precision = BF16
) -> list[tuple[int, int, int, int]]:
    found = candidates(SHELF.model(model), SHELF.chip(chip), "vllm", precision, 0, tp)
    return [(one.tp, one.pp, one.dp, one.ep) for one in found]


def test_groups_of_a_dense_model_are_inside_a_domain() -> None:
    assert groups("llama-3.1-8b", "h100-sxm") == [(1, 1, 1, 1), (2, 1, 1, 1), (4, 1, 1, 1), (8, 1, 1, 1)]
    assert groups("llama-3.1-8b", "l40s") == [(1, 1, 1, 1)]
    assert groups("llama-3.1-8b", "gb200")[-1] == (8, 1, 1, 1)  # of 72
    assert groups("llama-3.1-8b", "h100-sxm", tp=4) == [(4, 1, 1, 1)]
    assert groups("llama-3.1-8b", "h100-sxm", tp=3) == []


def test_stages_serve_what_one_group_does_not_hold() -> None:
    """405B in 16 bits is 812 GB: not on eight chips of 80 GB, on sixteen."""
    assert groups("llama-3.1-405b", "h100-sxm")[-2:] == [(8, 1, 1, 1), (8, 2, 1, 1)]
    assert groups("llama-3.1-405b", "h200")[-1] == (8, 1, 1, 1)
    assert groups("deepseek-v3", "h100-sxm")[-2:] == [(8, 2, 1, 1), (8, 4, 1, 1)]  # 1.34 TB in 16 bits


def test_experts_are_cut_spread_and_attended_apart() -> None:
    found = groups("mixtral-8x7b", "h200")
    assert found == [
        (1, 1, 1, 1), (2, 1, 1, 1), (2, 1, 1, 2), (4, 1, 1, 1), (4, 1, 1, 4), (8, 1, 1, 1), (8, 1, 1, 8), (1, 1, 8, 8),
    ]  # fmt: skip
    assert [one for one in groups("deepseek-v3", "h200") if one[2] > 1] == [
        (1, 1, 8, 8),
        (1, 1, 16, 16),
        (1, 1, 32, 32),
    ]
    assert (1, 1, 64, 64) in groups("deepseek-v3", "gb200")
    assert not [one for one in groups("deepseek-v3", "h200", tp=8) if one[2] > 1]


def test_the_best_of_each_chip_is_told_apart_from_the_rest() -> None:
    asked = Demand(load=CHAT, slo=SLO, rate_per_s=20.0)
    found = plan_serving(SHELF.model("llama-3.1-8b"), [H100, SHELF.chip("l40s")], asked, "vllm", headroom=0.2)
    assert found.headroom_fraction == 0.2
    assert found.best is found.choices[0]
    ranked = [(one.num_chips, one.state.tpot_s) for one in found.choices]
    assert ranked == sorted(ranked)
    others = [(one.num_chips, one.state.tpot_s) for one in found.others]
    assert others == sorted(others)
    assert not {id(one) for one in found.choices} & {id(one) for one in found.others}
    for best in found.choices:
        same = [one for one in found.others if one.replica.chip.name == best.replica.chip.name]
        assert all((best.num_chips, best.state.tpot_s) <= (one.num_chips, one.state.tpot_s) for one in same)
    for one in (*found.choices, *found.others):
        assert one.num_replicas * one.carried.rate_per_s * 0.8 >= 20.0 * (1 - 1e-6)
        assert one.num_replicas == 1 or (one.num_replicas - 1) * one.carried.rate_per_s * 0.8 < 20.0


@pytest.mark.parametrize(
    ("fields", "said"),
    [({"precisions": ()}, "no precision to plan for"), ({"tp": 3}, "tp = 3")],
)
def test_questions_that_cannot_be_planned(fields: dict[str, Any], said: str) -> None:
    asked = Demand(load=CHAT, slo=SLO, rate_per_s=20.0)
    with pytest.raises(ScenarioError, match=said):
        plan_serving(SHELF.model("llama-3.1-8b"), [H100], asked, "vllm", **fields)


def test_a_format_the_chip_does_not_know_is_not_the_nearest_way() -> None:
    """An A100 has no FP8 units; what came nearest is 16 bits, which it has, and which is too slow for the promise."""
    asked = Demand(load=CHAT, slo=Promise(ttft_s=1.0, tpot_s=1e-4), rate_per_s=1.0)
    a100 = SHELF.chip("a100-sxm-80gb")
    with pytest.raises(InfeasibleError, match="TPOT"):
        plan_serving(SHELF.model("llama-3.1-8b"), [a100], asked, "vllm", precisions=("bf16", "fp8"))


def test_a_training_plan_without_a_simulation_has_the_first_place() -> None:
    plan = closed()
    assert TrainingPlan(search=plan.search, num_tokens=1.0).layout == plan.search.layout(0)
    assert TrainingPlan(search=plan.search, num_tokens=64 * 8192.0).num_steps == 1
    assert TrainingPlan(search=plan.search, num_tokens=64 * 8192.0 + 1).num_steps == 2
