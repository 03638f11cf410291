"""How a service is chosen, with what is simulated replaced by numbers one can follow on paper."""

from __future__ import annotations

from math import inf
from types import SimpleNamespace
from typing import Any

import msgspec
import numpy as np
import pytest

from datahall.answers.ask import form_of
from datahall.catalog import Catalog
from datahall.cluster.wiring import Wiring
from datahall.errors import InfeasibleError, ScenarioError
from datahall.inference.closed_form.steady_state import Load
from datahall.planner.serving import confirm as confirming
from datahall.planner.serving import groups as grouping
from datahall.planner.serving import question as planning
from datahall.planner.serving.candidate import Candidate
from datahall.planner.serving.demand import Demand, demand_of
from datahall.planner.serving.question import plan_serving
from datahall.scenario.kinds import Raw
from datahall.scenario.read import read_names
from datahall.scenario.requests import requests_of
from datahall.scenario.scenario import Scenario
from datahall.scenario.sections.deployment import Deployment
from datahall.scenario.sections.traffic import Traffic
from datahall.scenario.sections.wanted.promise import Promise

SHELF = Catalog(user=False)
CHAT = Load(prompt=500.0, output=250.0)
PROMISE = Promise(ttft_s=1.0, tpot_s=0.05)
ONE_A_SECOND = Traffic(rate_per_s=1.0)


class Held(msgspec.Struct):
    """A replica of so many chips that holds a rate, and is slower the more it gets."""

    num_chips: int
    rate_per_s: float
    name: str = "h100"
    request_s: float = 0.01  # that each request a second adds to the time of a token
    most_per_s: float = 40.0
    level: str = "measured"

    @property
    def replica(self) -> SimpleNamespace:
        return SimpleNamespace(num_chips=self.num_chips, chip=SimpleNamespace(name=self.name), dp=1)

    @property
    def load(self) -> Load:
        return CHAT

    @property
    def curve(self) -> SimpleNamespace:
        """Each sequence more is half a request a second more: their number forgets what it was in two seconds."""
        decoding = np.arange(1.0, 101.0)
        return SimpleNamespace(decoding=decoding, rate_per_s=decoding / 2.0)

    @property
    def price(self) -> SimpleNamespace:
        return SimpleNamespace(table=None, level=self.level)

    def at(self, rate_per_s: float) -> SimpleNamespace:
        return SimpleNamespace(
            ttft_s=0.5, tpot_s=self.request_s * rate_per_s, rate_per_s=rate_per_s, decoding=2.0 * rate_per_s
        )


def way(
    num_replicas: int = 10, *, name: str = "h100", traffic: Traffic = ONE_A_SECOND, headroom: float = 0.1
) -> Candidate:
    held: Any = Held(2, 12.0, name)
    demand = Demand(
        traffic=requests_of(traffic, 0), load=CHAT, promise=PROMISE, rate_per_s=90.0, cut_fraction=0.0
    )
    return Candidate(
        held=held, precision="bf16", num_replicas=num_replicas, demand=demand, headroom_fraction=headroom
    )


def with_run(one: Candidate, *, stable: bool, good: float) -> Candidate:
    run: Any = SimpleNamespace(stable=stable, good_fraction=good, e2e_s=lambda _: 5.0, ttft_s=lambda _: 0.5)
    return msgspec.structs.replace(one, run=run)


def asked(**given: Raw) -> Scenario:
    words = {"model": "llama-3.1-8b", "isl": 500, "osl": 250, **given}
    return read_names(form_of("plan serve"), words, SHELF, bare=True)


def test_figures_of_a_way() -> None:
    """Ten replicas of two chips that hold 12 a second each, asked for 90, with a tenth left free."""
    one = way()
    assert one.num_chips == 20
    assert one.state.rate_per_s == 9
    assert one.full_state.rate_per_s == pytest.approx(10)
    assert one.spare_fraction == pytest.approx(120 / 90 - 1)
    assert one.chip_output_tokens_per_s == pytest.approx(90 * 250 / 20)


def test_of_as_many_chips_the_faster_goes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ways of 20, 18, 20 and 20 chips, the last three at 30, 10 and 20 ms a token."""
    ways = {"a": (10, 0.002), "b": (9, 0.003), "c": (10, 0.001), "d": (10, 0.0015)}

    def joined(group: str, *_: object) -> tuple[Held, int]:
        count, request_s = ways[group]
        return Held(2, 12.0, group, request_s), count

    monkeypatch.setattr(planning, "on_its_fabric", joined)
    asked_for = way()
    looked: Any = [(Deployment(), name) for name in ways]
    question = planning.Question(SHELF.model("llama-3.1-8b"), asked_for.demand, 0.1, 0, False, [], looked)
    found, refused = planning.weighed(question, SHELF, Wiring())
    assert [one.replica.chip.name for one in found] == ["b", "c", "d", "a"]
    assert not refused


def added(num: int, *, ttft_s: float = 0.2, tpot_s: float = 0.045, good: float = 1.0) -> Candidate:
    """Ten replicas and some that simulation added, with the latencies that it saw."""
    run: Any = SimpleNamespace(
        stable=True, good_fraction=good, ttft_s=lambda _: ttft_s, tpot_s=lambda _: tpot_s
    )
    return msgspec.structs.replace(way(10 + num), num_added=num, run=run)


def test_what_is_held_is_what_was_kept_where_replicas_were_added() -> None:
    """100 requests a second, with the headroom used up, were kept by 12 replicas and not by fewer."""
    plain, more = added(0), added(2)
    assert plain.held_per_s == 12.0
    assert more.held_per_s == pytest.approx(100 / 12)
    assert more.held_tokens_per_s == pytest.approx(250 * 100 / 12)
    assert more.held_chip_per_s == pytest.approx(100 / 24)
    assert more.spare_fraction == pytest.approx(100 / 90 - 1)
    assert plain.spare_fraction == pytest.approx(120 / 90 - 1)
    assert added(2, good=0.5).spare_fraction == 0.0


@pytest.mark.parametrize(("ttft_s", "tpot_s", "binds"), [(0.2, 0.045, "TPOT"), (0.95, 0.045, "TTFT")])
def test_what_binds_is_the_latency_that_was_nearer_its_limit(
    ttft_s: float, tpot_s: float, binds: str
) -> None:
    assert added(2, ttft_s=ttft_s, tpot_s=tpot_s).binds == binds


def test_users_pause_between_answers() -> None:
    """An answer of 250 tokens takes 12.5 s to read, and 7.5 s pass before the next."""
    model = SHELF.model("llama-3.1-8b")
    pausing = demand_of(asked(users=400, think=7.5), model)
    at_once = demand_of(asked(users=400), model)
    assert (pausing.rate_per_s, pausing.think_s) == (20, 7.5)
    assert (at_once.rate_per_s, at_once.users) == (32, 400)
    assert demand_of(asked(rate=20), model).users == 0
    assert (pausing.load.prompt, pausing.load.output) == (500, 250)


def test_users_always_have_a_pace() -> None:
    """The limit has a default, and no other can be asked for than a finite one."""
    assert asked(users=400).one(Promise).tpot_s == 0.05
    with pytest.raises(ScenarioError, match="not a finite number"):
        asked(users=400, tpot=inf)


@pytest.mark.parametrize(
    ("stable", "good", "keeps"), [(True, PROMISE.percentile, True), (True, 0.5, False), (False, 1.0, False)]
)
def test_limits_are_kept_by_a_stable_run_with_enough_good_requests(
    stable: bool, good: float, keeps: bool
) -> None:
    assert with_run(way(), stable=stable, good=good).keeps is keeps
    assert not way().keeps  # nothing was simulated


def simulated_until(monkeypatch: pytest.MonkeyPatch, enough: int, good: float = 1.0) -> list[int]:
    """Runs that keep the limits from so many replicas on."""
    tried: list[int] = []

    def simulated(one: Candidate, _seed: int) -> Candidate:
        tried.append(one.num_replicas)
        return with_run(one, stable=True, good=good if one.num_replicas >= enough else 0.0)

    monkeypatch.setattr(confirming, "_loaded", simulated)
    return tried


@pytest.mark.parametrize(("replicas", "near"), [(1, 1), (10, 1), (40, 1), (100, 2), (400, 8)])
@pytest.mark.parametrize("good", [1.0, 0.951])
def test_the_fewest_that_keep_the_limits_are_found(
    monkeypatch: pytest.MonkeyPatch, replicas: int, near: int, good: float
) -> None:
    """From one to twice what the closed form asks for, to a hundredth, however nearly the limits are broken."""
    for enough in range(1, 2 * replicas + 1, max(1, replicas // 40)):
        tried = simulated_until(monkeypatch, enough, good)
        free = way(replicas)
        free.held.most_per_s = 1e6  # one could hold all
        found = confirming.confirm(free, seed=0)
        assert found.keeps
        assert enough <= found.num_replicas < enough + near
        assert found.num_added == found.num_replicas - replicas
        assert len(tried) == len(set(tried)) <= 3 * (2 * replicas).bit_length()
        if enough == 1:
            assert found.num_replicas == 1
            assert found.num_fewer == 0  # nothing is fewer than one
        else:
            assert found.num_replicas - found.num_fewer in tried
            assert enough > found.num_replicas - found.num_fewer >= enough - near


def test_replicas_are_not_added_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    simulated_until(monkeypatch, 21)
    found = confirming.confirm(way(10), seed=0)
    assert (found.keeps, found.num_replicas, found.num_fewer) == (False, 20, 0)


def test_what_is_held_is_more_where_replicas_were_taken_away() -> None:
    """100 requests a second were kept by 5 replicas of the 10 that the closed form asked for."""
    fewer = added(-5, tpot_s=0.01)
    assert fewer.held_per_s == pytest.approx(20.0)
    assert fewer.binds == "TTFT"
    assert fewer.num_joined == 10
    assert fewer.spare_fraction == pytest.approx(100 / 90 - 1)


def test_a_rival_is_followed_as_far_as_its_chips_stay_below(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten replicas in closed form: fifteen at most, or four at most where it may need fewer than it asks for."""
    tried = simulated_until(monkeypatch, 999)
    assert not confirming.confirm(way(), most=15, seed=0).keeps
    assert max(tried) == 15
    tried = simulated_until(monkeypatch, 999)
    assert not confirming.confirm(way(), most=4, seed=0).keeps
    assert tried == [4]
    simulated_until(monkeypatch, 13)
    assert confirming.confirm(way(), most=15, seed=0).num_added == 3
    simulated_until(monkeypatch, 3)
    found = confirming.confirm(way(), most=4, seed=0)
    assert (found.num_replicas, found.num_added, found.num_fewer) == (3, -7, 0)


def test_a_rival_whose_users_break_the_limits_is_not_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nobody is compared with it, the same is simulated under the load too: an answer shows it."""
    tried = simulated_until(monkeypatch, 1)
    asked_for: list[tuple[int, float]] = []

    def hurried(one: Candidate, _seed: int, share_wanted: float = 0.0) -> Any:
        asked_for.append((one.num_replicas, share_wanted))
        return SimpleNamespace(stable=True, good_fraction=0.5)

    monkeypatch.setattr(confirming, "_hurried", hurried)
    of_users = way(traffic=Traffic(users=50))
    assert not confirming.confirm(of_users, most=15, seed=0).keeps
    assert not tried
    assert {share for _, share in asked_for} == {PROMISE.percentile}
    alone = confirming.confirm(of_users, seed=0)
    assert (alone.num_replicas, alone.keeps) == (20, False)
    assert alone.run is not None
    assert asked_for[-1] == (20, 0.0)  # whole: its share is shown


def test_fewer_than_hold_the_load_are_never_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    """One replica holds 40 a second without any limit: two have a queue that grows under 100, whatever a run shows."""
    tried = simulated_until(monkeypatch, 1)
    found = confirming.confirm(way(), seed=0)
    assert found.num_replicas == min(tried) == 3


def confirmed_as(monkeypatch: pytest.MonkeyPatch, takes: dict[int, int]) -> list[tuple[int, int]]:
    """Ways by their replicas: how many each takes when simulated; 0: never enough."""
    tried: list[tuple[int, int]] = []

    def confirm(one: Candidate, *, seed: int = 0, most: int = 0) -> Candidate:
        del seed
        tried.append((one.num_replicas, most))
        count = takes[one.num_replicas]
        larger = msgspec.structs.replace(one, num_replicas=count or one.num_replicas)
        return with_run(larger, stable=count > 0 and (not most or count <= most), good=1.0)

    monkeypatch.setattr(confirming, "confirm", confirm)
    return tried


def test_rivals_are_simulated_while_they_could_take_fewer_chips(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two chips a replica.  The best takes 16 replicas instead of 10; rivals are asked for fewer than the best has,
    also those that the closed form has more of: one of 16 takes 12.  One on another chip is another matter."""
    tried = confirmed_as(monkeypatch, {10: 16, 11: 14, 12: 15, 13: 13, 14: 14, 16: 12})
    found = confirming.confirmed(
        [way(10), way(11), way(13, name="h200"), way(12), way(14), way(16)], seed=0
    ).best
    assert [(one.replica.chip.name, one.num_replicas) for one in found] == [("h100", 12), ("h200", 13)]
    assert tried == [(10, 0), (11, 15), (13, 0), (12, 13), (14, 13), (16, 13)]


def test_what_no_load_at_all_fits_on_is_not_simulated(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three replicas are the least that hold 100 a second without any limit: no rival can have fewer."""
    assert way(10).num_least == 3
    tried = confirmed_as(monkeypatch, {10: 3, 11: 2})
    (found,) = confirming.confirmed([way(10), way(11)], seed=0).best
    assert (found.num_replicas, tried) == (3, [(10, 0)])


def test_a_rival_that_does_not_keep_the_limits_is_no_rival(monkeypatch: pytest.MonkeyPatch) -> None:
    confirmed_as(monkeypatch, {10: 16, 11: 0, 12: 16})
    (found,) = confirming.confirmed([way(10), way(11), way(12)], seed=0).best
    assert found.num_replicas == 16
    assert found.keeps


def test_kept_limits_come_first_and_then_fewer_chips(monkeypatch: pytest.MonkeyPatch) -> None:
    confirmed_as(monkeypatch, {10: 0, 11: 15, 12: 12})
    found = confirming.confirmed([way(10), way(11, name="a"), way(12, name="b")], seed=0).best
    assert [one.num_replicas for one in found] == [12, 15, 10]


def test_of_equally_many_chips_the_one_that_is_known_best_comes_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    confirmed_as(monkeypatch, {10: 10})
    ways = [way(10, name=level) for level in ("datasheet only", "measured", "family-calibrated")]
    for one in ways:
        one.held.level = one.held.name  # type: ignore[attr-defined]
    found = confirming.confirmed(ways, seed=0).best
    assert [one.held.price.level for one in found] == ["measured", "family-calibrated", "datasheet only"]


@pytest.mark.parametrize(("turns", "added", "replicas"), [(1, 0, 24), (4, 2, 22), (1, 0, 3)])
def test_a_few_replicas_are_simulated_under_their_share(
    monkeypatch: pytest.MonkeyPatch, turns: int, added: int, replicas: int
) -> None:
    """90 a second with a tenth left free is 100; twelve of 24 replicas get half of it, three of three all."""
    seen: dict[str, Any] = {}

    def simulated(fleet: Any, requests: Any, **options: Any) -> SimpleNamespace:
        seen.update(fleet=fleet, requests=requests, **options)
        return SimpleNamespace(stable=True, good_fraction=1.0)

    monkeypatch.setattr(confirming, "simulate_serving", simulated)
    monkeypatch.setattr(confirming, "Fleet", lambda pools: pools)
    monkeypatch.setattr(confirming, "Pool", lambda **fields: fields)
    monkeypatch.setattr(confirming, "generate", lambda traffic, _seed: traffic)
    count, num = replicas + added, min(12, replicas + added)
    more = way(replicas, traffic=Traffic(users=50, turns=turns))
    found = confirming._loaded(msgspec.structs.replace(more, num_replicas=count, num_added=added), 7)
    share = 100 * num / count
    assert (found.num_added, found.num_replicas, found.keeps) == (added, count, True)
    asked = seen["requests"]
    assert asked.arrivals.rate_per_s == pytest.approx(share / turns)
    assert asked.users is None
    stay_s = 0.5 + 0.01 * 100 / count * 250  # a token each 10 ms for each request a second
    assert asked.num_requests == max(4500, int(10 * share * stay_s))
    coming_s = asked.num_requests / share
    edge_s = min(2 * stay_s, coming_s / 6)
    assert seen["warmup_s"] == pytest.approx(max(edge_s, 3 * 2.0))
    assert seen["measure_rows"] == pytest.approx(asked.num_requests * (1 - edge_s / coming_s), abs=1)
    assert (seen["seed"], seen["slo"]) == (7, PROMISE)
    assert seen["fleet"][0]["count"] == num


def groups(model: str, chip: str, tp: int | None = None) -> list[tuple[int, int, int, int]]:
    found = grouping.groups(Deployment(chip=SHELF.chip(chip).name, tp=tp), SHELF.model(model), SHELF)
    return [(one.tp, one.pp, one.dp, one.ep) for one in found]


def test_groups_of_a_dense_model_are_inside_a_domain() -> None:
    assert groups("llama-3.1-8b", "h100-sxm") == [(1, 1, 1, 1), (2, 1, 1, 1), (4, 1, 1, 1), (8, 1, 1, 1)]
    assert groups("llama-3.1-8b", "l40s") == groups("llama-3.1-8b", "h100-sxm")  # eight share a server's PCIe
    assert groups("llama-3.1-8b", "gh200") == [(1, 1, 1, 1)]
    assert groups("llama-3.1-8b", "gb200")[-1] == (8, 1, 1, 1)  # of 72
    assert groups("llama-3.1-8b", "h100-sxm", tp=4) == [(4, 1, 1, 1)]
    assert groups("llama-3.1-8b", "h100-sxm", tp=3) == []


def test_stages_serve_what_one_group_does_not_hold() -> None:
    """405B in 16 bits is 812 GB: not on eight chips of 80 GB, on sixteen."""
    assert groups("llama-3.1-405b", "h100-sxm")[-2:] == [(4, 4, 1, 1), (8, 2, 1, 1)]
    assert (8, 1, 1, 1) in groups("llama-3.1-405b", "h200")
    assert groups("llama-3.1-405b", "h200")[-1] == (4, 2, 1, 1)
    assert groups("deepseek-v3", "h100-sxm")[-2:] == [(1, 1, 32, 32), (8, 4, 1, 1)]  # 1.34 TB in 16 bits
    assert [one[:2] for one in groups("mixtral-8x7b", "rtx-4090") if one[1] > 1] == [(2, 4), (4, 2)]  # 93 GB


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


def test_the_best_of_each_chip_is_told_apart_from_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    """As the closed form has them: every way takes as many when it is simulated."""

    def simulated(one: Candidate, _seed: int) -> Candidate:
        return with_run(one, stable=True, good=0.96 if one.num_added >= 0 else 0.0)

    monkeypatch.setattr(confirming, "_loaded", simulated)
    monkeypatch.setattr(confirming, "_hurried", lambda one, _seed: one)
    monkeypatch.setattr(planning, "proposed", lambda candidate: candidate)  # its run is made up
    found = plan_serving(
        asked(rate=20, chips="h100-sxm,l40s", precision="bf16", headroom=0.2, objective="chips")
    )
    lost = [one.candidate for one in found.alternatives]
    assert found.chosen is found.best[0]
    assert {one.replica.chip.name for one in found.best} == {"h100-sxm", "l40s"}
    ranked = [(one.num_chips, one.state.tpot_s) for one in found.best]
    assert ranked == sorted(ranked)
    others = [(one.num_chips, one.state.tpot_s) for one in lost]
    assert others == sorted(others)
    assert not {one.key for one in found.best} & {one.key for one in lost}
    assert found.num_candidates == len(found.best) + len(lost)
    for best in found.best:
        same = [one for one in lost if one.replica.chip.name == best.replica.chip.name]
        assert all((best.num_chips, best.state.tpot_s) <= (one.num_chips, one.state.tpot_s) for one in same)
    for one in (*found.best, *lost):
        assert one.headroom_fraction == 0.2
        assert one.num_replicas * one.held.rate_per_s * 0.8 >= 20.0 * (1 - 1e-6)
        assert one.num_replicas == 1 or (one.num_replicas - 1) * one.held.rate_per_s * 0.8 < 20.0


@pytest.mark.parametrize(
    ("given", "said"), [({"precision": ""}, "nothing is named"), ({"chips": "h100-sxm", "tp": 3}, "tp=3")]
)
def test_questions_that_cannot_be_planned(given: dict[str, Raw], said: str) -> None:
    with pytest.raises(ScenarioError, match=said):
        plan_serving(asked(rate=20, **given))


def test_a_format_the_chip_does_not_know_is_not_the_nearest_way() -> None:
    """An A100 has no FP8 units; what came nearest is 16 bits, which it has, and which is too slow for the limit."""
    question = asked(rate=1, ttft=1.0, tpot=1e-4, chips="a100-sxm-80gb", precision="bf16,fp8")
    with pytest.raises(InfeasibleError, match="TPOT"):
        plan_serving(question)
