"""The figures of a serving plan: limits as they were asked, bands as they were earned, the fabric under every way."""

from __future__ import annotations

import pytest

import datahall as dh
from datahall.answers.ask import form_of
from datahall.breakdown import Breakdown, false_nodes
from datahall.catalog import Catalog
from datahall.cluster.cluster import cluster_from
from datahall.errors import ScenarioError
from datahall.inference.engine.replica import replica_system
from datahall.planner.serving.candidate import Candidate
from datahall.planner.serving.figure import chips_figure, latency_figures
from datahall.planner.serving.plan import ServingPlan
from datahall.planner.serving.question import plan_serving
from datahall.planner.serving.refusal import Refused
from datahall.scenario.kinds import Raw
from datahall.scenario.read import read_names
from datahall.scenario.sections.fabric import FabricDesign

SHELF = Catalog(user=False)


def plan(model: str = "llama-3.1-8b", **given: Raw) -> ServingPlan:
    words = {"model": model, "isl": 500, "osl": 250, "chips": "h100-sxm", "precision": "bf16", **given}
    return plan_serving(read_names(form_of("plan serve"), words, SHELF, bare=True))


def named(figure: Breakdown, start: str) -> list[Breakdown]:
    return [node for _, node in figure.walk() if node.name.startswith(start)]


def every_way(found: ServingPlan) -> list[Candidate]:
    return [*found.best, *(lost.candidate for lost in found.alternatives)]


@pytest.mark.parametrize(
    ("lengths", "origin"),
    [({}, "input"), ({"spread": "2x"}, "derived"), ({"osl": 4000, "max_context": 1000}, "derived")],
)
def test_only_an_answer_as_long_as_was_said_is_an_input(lengths: dict[str, Raw], origin: str) -> None:
    (tokens,) = named(chips_figure(plan(users=40, **lengths).chosen), "tokens of an answer")
    assert tokens.origin == origin


def test_the_limit_is_the_one_that_was_asked() -> None:
    for tpot, percentile, shown in ((0.02, 0.9, "P90"), (0.04, 0.99, "P99")):
        best = plan(rate=30, tpot=tpot, ttft=5.0, percentile=percentile).chosen
        assert best.held.ends == "TPOT"
        figure = chips_figure(best)
        assert false_nodes(figure) == []
        limit = named(figure, "TPOT limit")[0]
        assert (limit.value, limit.origin) == (tpot, "input")
        reached = named(figure, "TPOT at")[0]
        assert reached.name == f"TPOT at {shown}"
        # the most that is held just keeps the limit
        assert 0.9 * tpot < reached.value <= tpot


def test_where_prompts_bind_the_limit_is_that_of_the_first_token() -> None:
    best = plan(rate=5, isl=4000, osl=20, ttft=0.4, tpot=0.5).chosen
    assert best.held.ends == "TTFT"
    figure = chips_figure(best)
    limit = named(figure, "TTFT limit")[0]
    assert limit.value == 0.4
    reached = named(figure, "TTFT at")[0]
    assert reached.value == best.held.state.ttft_high_s
    assert not named(figure, "TPOT limit")


def test_where_the_cache_ends_it_that_is_said() -> None:
    best = plan(rate=5, isl=20_000, osl=500, ttft=60.0, tpot=1.0, chips="l40s", tp=1).chosen
    assert best.held.ends == "cache"
    held = named(chips_figure(best), "held by a rank")[0]
    assert "cache" in held.note
    assert named(chips_figure(best), "held by a rank")[0].value == pytest.approx(best.held.rate_per_s)


def test_a_replica_that_is_slower_holds_fewer_requests() -> None:
    """The band of what is held is that of a step turned round: a step 1.2 times as long holds 1/1.2 as much."""
    best = plan(rate=300).chosen
    low, high = best.held.price.band
    figure = chips_figure(best)
    held = named(figure, "held by a rank")[0]
    assert held.band is not None
    assert held.band.low * high == pytest.approx(held.value)
    assert held.band.high * low == pytest.approx(held.value)
    # and takes more chips; counts may round to the same
    assert figure.band is not None
    assert figure.band.low <= figure.value <= figure.band.high
    assert figure.band.low < figure.band.high
    (over,) = named(figure, "offered over held")
    assert over.band is not None
    assert over.band.low < over.value < over.band.high


def test_replicas_that_simulation_added_stand_beside_those_of_the_closed_form() -> None:
    """Nothing in the chain is the answer turned round: what one replica holds is that of the closed form."""
    best = plan("llama-3.1-70b", users=2000, tp=2, precision="fp8", isl=None, osl=None).chosen
    assert best.num_added > 0
    figure = chips_figure(best)
    assert false_nodes(figure) == []
    (added,) = named(figure, "replicas that simulation added")
    assert (added.value, added.origin) == (best.num_added, "simulated")
    (held,) = named(figure, "one replica holds")
    assert held.value == pytest.approx(best.held.rate_per_s)


def test_degrees_are_chosen_unless_they_were_given() -> None:
    best = plan("llama-3.1-70b", rate=5, chips="h200", tp=4).chosen
    (tp,) = named(chips_figure(best), "tp")
    assert (tp.value, tp.origin, tp.fields) == (4, "decision", ("tp",))


def test_users_offer_what_they_read_and_how_often() -> None:
    best = plan(users=200, think=10.0, tpot=0.04).chosen
    (offered,) = named(chips_figure(best), "offered")[1:]
    assert offered.value == pytest.approx(200 / (250 * 0.04 + 10.0))
    (think,) = named(offered, "think time")
    assert think.value == 10.0
    (users,) = named(offered, "users")
    assert users.value == 200


def test_latencies_have_bands_of_their_own() -> None:
    best = plan(rate=20, percentile=0.9).chosen
    assert best.run is not None
    found = latency_figures(best)
    assert {name: figure.name for name, figure in found.items()} == {"TTFT": "TTFT P90", "TPOT": "TPOT P90"}
    assert found["TTFT"].value == best.run.ttft_s(0.9)
    assert found["TPOT"].value == best.run.tpot_s(0.9)
    for figure, band in (
        (found["TTFT"], best.replica.engine.band("TTFT")),
        (found["TPOT"], best.held.price.band),
    ):
        assert figure.band is not None
        assert (figure.band.low / figure.value, figure.band.high / figure.value) == pytest.approx(band)


def test_what_an_answer_shows_is_found_with_the_plan() -> None:
    found = plan(rate=20, chips="h100-sxm,l40s")
    assert len(found.best) == 2
    for best in found.best:
        assert best.latencies == latency_figures(best)
        assert sum(best.resource_shares.values()) == pytest.approx(1.0)
        assert list(best.resource_shares.values()) == sorted(best.resource_shares.values(), reverse=True)
        assert best.step in [node for _, node in chips_figure(best).walk()]


def test_answers_of_one_token_have_no_time_per_token() -> None:
    assert set(latency_figures(plan(rate=20, osl=1).chosen)) == {"TTFT"}


def test_what_a_way_gets_and_yields_is_divided_over_its_chips() -> None:
    best = plan("llama-3.1-70b", rate=40, chips="h200", tp=4, headroom=0.2).chosen
    assert best.replica_rate_per_s * best.num_replicas == pytest.approx(40)
    assert best.full_rate_per_s * 0.8 == pytest.approx(40)
    assert best.more_load_fraction == pytest.approx(0.25)
    assert best.demand.reading_tokens_per_s * best.demand.promise.tpot_s == pytest.approx(1)
    assert best.held_chip_per_s * 4 == pytest.approx(best.held_per_s)
    curve = best.load_curve
    rates, times_s = zip(*curve, strict=True)
    assert list(rates) == sorted(rates)
    loaded_s = [
        time_s for rate, time_s in curve if rate > 0.1 * rates[-1]
    ]  # with few at once, chance rules the tail
    assert loaded_s == sorted(loaded_s)
    assert best.demand.promise.tpot_s < max(times_s) <= 2.5 * best.demand.promise.tpot_s
    # what is drawn is compared with the limit: it passes that at the knee
    assert best.held.ends == "TPOT"
    before = max(time_s for rate, time_s in curve if rate <= best.knee_chip_per_s)
    after = min(time_s for rate, time_s in curve if rate > best.knee_chip_per_s)
    assert before <= best.demand.promise.tpot_s < after


def test_ranks_of_a_replica_are_counted_together() -> None:
    """DeepSeek-V3 with attention on 16 ranks: sequences and tokens of cache of all of them, a rate of each chip."""
    found = plan("deepseek-v3", rate=50, chips="h200", precision="fp8")
    way = next(way for way in every_way(found) if way.replica.dp == 16)
    assert way.num_decoding == pytest.approx(16 * way.held_state.decoding)
    mean = way.held.load.prompt + way.held.load.output
    assert way.held.cache_tokens == 16 * way.held.capacity.held_tokens(round(mean))
    most = max(rate for rate, _ in way.held.chip_curve(2.5 * found.demand.promise.tpot_s))
    assert most * 16 <= way.held.most_per_s * (1 + 1e-9)
    assert most > way.held_chip_per_s / 2


WIRED = {"nic": "100Gb/s", "on": "fat-tree", "oversubscription": "4:1"}


LEAF = 64  # ports of the switch that joins 100 Gb/s cards: so many chips need one tier only


@pytest.mark.parametrize("model", ["llama-3.1-70b", "deepseek-v3"])
def test_every_way_stands_on_the_fabric_that_was_asked_for(model: str) -> None:
    found = plan(model, rate=100, chips="h200,h100-sxm", precision="fp8", **WIRED)
    ways = every_way(found)
    assert len({way.key for way in ways}) > 3
    narrow = 0
    for way in ways:
        system = replica_system(way.replica)
        assert (system.num_domain, system.nic_bytes_per_s) == (8, pytest.approx(12.5e9))
        narrow += len(system.cuts)
        if (way.num_replicas - way.num_added) * way.replica.num_chips > LEAF:
            (cut,) = system.cuts
            assert cut.bytes_per_s < cut.num_below * 12.5e9
    assert narrow


def test_ways_across_servers_hold_less_behind_a_narrow_fabric() -> None:
    asked = {"model": "deepseek-v3", "rate": 20, "chips": "h200", "precision": "fp8"}
    held = {}
    for name, said in (("wide", {}), ("narrow", WIRED)):
        held[name] = {way.key: way.held.rate_per_s for way in every_way(plan(**asked, **said))}  # type: ignore[arg-type]
    both = held["wide"].keys() & held["narrow"].keys()
    across = [key for key in both if key[2] * key[4] > 8]
    inside = [key for key in both if key[2] * key[4] <= 8]
    assert across
    assert inside
    assert all(held["narrow"][key] < held["wide"][key] for key in across)
    assert all(held["narrow"][key] == held["wide"][key] for key in inside)


def test_the_fabric_of_a_plan_joins_all_its_chips() -> None:
    said = {"chips": "h100-sxm", "precision": "fp8", "tp": 8, "on": "fat-tree"}
    design, seen = FabricDesign(topology="fat-tree"), set()
    for rate in (20, 20_000):
        for way in every_way(plan("llama-3.1-70b", rate=rate, **said)):
            chips = (way.num_replicas - way.num_added) * way.replica.num_chips
            whole = cluster_from(design, SHELF, chip="h100-sxm", num_chips=chips).system
            assert replica_system(way.replica).cuts == whole.cuts
            seen.add(len(whole.cuts))
    assert len(seen) == 2  # the large one has a tier more


def test_a_fabric_brings_its_chip_to_a_plan() -> None:
    words = {"model": "llama-3.1-8b", "rate": 5, "on": "nvl72", "precision": "bf16"}
    found = plan_serving(read_names(form_of("plan serve"), words, SHELF, bare=True))
    assert {way.replica.chip.name for way in every_way(found)} == {"gb200"}
    assert {replica_system(way.replica).num_domain for way in every_way(found)} == {72}


def test_a_chip_that_the_fabric_does_not_join_is_refused_by_itself() -> None:
    found = plan(rate=5, on="nvl72", chips="h100-sxm,gb200")
    assert {way.replica.chip.name for way in every_way(found)} == {"gb200"}
    (refused,) = (one for one in found.refusals if isinstance(one, Refused) and one.chip == "h100-sxm")
    assert "8, not 72" in refused.why
    with pytest.raises(ScenarioError, match="8, not 72"):
        plan(rate=5, on="nvl72", chips="h100-sxm")


def test_replicas_that_were_taken_away_are_told_beside_what_the_closed_form_asked_for() -> None:
    """Its band is that of the closed form in proportion: no plan of ten has a bound of none."""
    found = dh.plan_serve("llama-3.1-8b", rate=400, osl=1, chips=["h100-sxm"], precision=["bf16"])
    assert found.figure is not None
    assert false_nodes(found.figure) == []
    replicas = next(one for _, one in found.figure.walk() if one.name == "replicas")
    (closed,) = replicas.parts
    assert (replicas.origin, closed.name) == ("simulated", "replicas in closed form")
    assert replicas.value < closed.value
    assert replicas.band is not None
    assert closed.band is not None
    assert replicas.band.low / replicas.value == pytest.approx(closed.band.low / closed.value)
    assert replicas.band.high / replicas.value == pytest.approx(closed.band.high / closed.value)
