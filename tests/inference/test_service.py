"""Services: what a scenario of one means, and what each part does to a run."""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from pathlib import Path

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from datahall.answers.ask import form_of
from datahall.catalog import Catalog, document
from datahall.errors import DatahallError, ScenarioError
from datahall.inference.engine.engine import engine_on
from datahall.inference.engine.replica import Speculation, replica_system
from datahall.inference.fleet.merged_traffic import merge
from datahall.inference.fleet.response_cache import hit_rates
from datahall.inference.fleet.service import (
    Outcome,
    Service,
    drawn_streams,
    requests_in_order,
    service_of,
    simulate_service,
)
from datahall.inference.fleet.span import expected_s
from datahall.scenario.read import read_document
from datahall.workload.traffic.arrivals import Arrivals
from datahall.workload.traffic.conversation import Conversation
from datahall.workload.traffic.lengths import Empirical, Fixed, Lognormal, Quantiles, Uniform
from datahall.workload.traffic.presets import preset
from datahall.workload.traffic.requests import Requests, in_chunks, join
from datahall.workload.traffic.traffic import Traffic, generate

ROOT = 'version = 1\nmodel = "llama-3.1-8b"\n'
POOL = '[[deployment]]\nchip = "h100-sxm"\n'
TRAFFIC = "[traffic]\nisl = 200\nosl = 40\nrate = 5\nrequests = 300\n"
REGIONS = '[[region]]\nname = "eu"\ninside = "1 ms"\nto = { us = "40 ms" }\n[[region]]\nname = "us"\n'


Read = Callable[[str], Service]


def read_file(path: Path, shelf: Catalog) -> Service:
    return service_of(read_document(form_of("simulate serve"), document.read(path), shelf))


def test_the_least_scenario_has_the_defaults_of_the_command(read: Read, shelf: Catalog) -> None:
    scenario = read(ROOT + POOL + TRAFFIC)
    assert scenario.model is shelf.model("llama-3.1-8b")
    assert scenario.fleet.routing == "least-outstanding"
    assert (scenario.promise.ttft_s, scenario.promise.tpot_s) == (1.0, 0.05)
    assert scenario.streams[0].traffic == Traffic(
        prompt=Fixed(200), output=Fixed(40), arrivals=Arrivals(rate_per_s=5.0), num_requests=300,
        max_context=scenario.model.max_context,
    )  # fmt: skip
    assert 0 < scenario.window.start_s < 0.1 * 300 / 5
    assert (scenario.seed, scenario.until_s) == (0, inf)


def test_what_is_read_twice_is_the_same(read: Read) -> None:
    text = ROOT + POOL + TRAFFIC
    one, other = read(text), read(text)
    assert one.streams == other.streams
    ends = [simulate_service(each, record=True).run.records.end_s.tobytes() for each in (one, other)]
    assert ends[0] == ends[1]


def test_a_deployment_says_how_its_replicas_are_built(read: Read) -> None:
    pool = (
        '[[deployment]]\nchip = "h100-sxm"\nreplicas = 3\ntp = 2\npp = 2\nprecision = "fp8"\nengine = "sglang"\n'
        'token_budget = "4k tokens"\nmax_sequences = 64\nprefix_caching = false\npreemption = "recompute"\n'
        'memory_fraction = "80 %"\nmax_context = "16k"\nbatching = "dynamic"\nwait = "5 ms"\n'
        'draft = "ngram"\nnum_draft = 2\nacceptance = "50 %"\n[fabric]\nnic = "400 Gb/s"\ndomain = 8\n'
    )
    scenario = read(ROOT + pool + TRAFFIC)
    made = scenario.fleet.pools[0]
    replica, engine = made.replica, made.replica.engine
    assert (made.count, replica.tp, replica.pp, replica.precision.compute) == (3, 2, 2, "fp8")
    assert (engine.name, engine.token_budget, engine.max_sequences) == ("sglang", 4000, 64)
    assert (engine.prefix_caching, engine.memory_fraction, engine.wait_s) == (False, 0.8, 5e-3)
    assert replica.max_context == 16_000
    system = replica_system(replica)
    assert (system.nic_bytes_per_s, system.num_domain) == (50e9, 8)
    assert replica.speculation == Speculation(draft="ngram", num_draft=2, acceptance=0.5)
    assert scenario.streams[0].traffic.max_context == 16_000
    assert scenario.precisions == ("fp8",)


@pytest.mark.parametrize(
    ("written", "lengths"),
    [
        ('"1k tokens"', Fixed(1000)),
        ('{ shape = "fixed", tokens = 7 }', Fixed(7)),
        ('{ shape = "uniform", low = 10, high = "1k" }', Uniform(10, 1000)),
        ('{ shape = "lognormal", mean = 500, variation = 1.5 }', Lognormal(500, 1.5)),
        ('{ shape = "lognormal", mean = 100, median = 50 }', Lognormal(100, 3**0.5)),
        ('{ shape = "quantiles", quantiles = [[0, 1], ["50 %", 80], [1, "2k"]] }',
         Quantiles(((0, 1), (0.5, 80), (1, 2000)))),
        ('{ shape = "empirical", tokens = [5, 6] }', Empirical((5, 6))),
    ],
)  # fmt: skip
def test_lengths_have_shapes(read: Read, written: str, lengths: object) -> None:
    scenario = read(ROOT + POOL + TRAFFIC.replace("isl = 200", f"isl = {written}"))
    found = scenario.streams[0].traffic.prompt
    if isinstance(found, Lognormal):
        assert isinstance(lengths, Lognormal)
        assert found.variation_ratio == pytest.approx(lengths.variation_ratio)
    else:
        assert found == lengths


def test_lengths_can_stand_in_a_file_beside_the_scenario(tmp_path: Path, shelf: Catalog) -> None:
    (tmp_path / "seen.txt").write_text("12\n30\n")
    file = tmp_path / "s.toml"
    file.write_text(ROOT + POOL + TRAFFIC.replace("200", '{ shape = "empirical", file = "seen.txt" }'))
    assert read_file(file, shelf).streams[0].traffic.prompt == Empirical((12, 30))
    (tmp_path / "seen.txt").write_text("12\nmany\n")
    with pytest.raises(DatahallError, match=r"seen\.txt:2"):
        read_file(file, shelf)


def test_traffic_says_how_requests_come_and_what_they_share(read: Read) -> None:
    traffic = (
        '[traffic]\npreset = "rag"\nrate = "12/s"\nburstiness = 2\nswing = "30 %"\npeak = "1 h"\nturns = 3\n'
        'think = "20 s"\nsystem = "2k tokens"\ngroups = 4\ngroup_zipf = 0.5\nduration = "10 min"\n'
    )
    found = read(ROOT + POOL + traffic).streams[0].traffic
    assert found.arrivals == Arrivals(
        rate_per_s=4.0, gaps="gamma", variation_ratio=2.0, swing_fraction=0.3, peak_s=3600.0
    )
    known = preset("rag")
    assert found.prompt == known.prompt
    assert found.conversation == msgspec.structs.replace(
        known.conversation, num_turns=3.0, think=msgspec.structs.replace(known.conversation.think, mean_s=20.0),
        system_tokens=2000, num_groups=4, group_zipf_factor=0.5,
    )  # fmt: skip
    assert found.duration_s == 600.0
    assert expected_s(found) == 600.0


@pytest.mark.parametrize(
    ("written", "arrivals"),
    [
        ("rate = inf", Arrivals(rate_per_s=inf, gaps="at-once")),
        ("rate = 4\nburstiness = 0", Arrivals(rate_per_s=4.0, gaps="constant")),
        (
            'rate = 4\nbusy = "1 min"\nlull = "2 min"\nlull_rate = 0.1',
            Arrivals(rate_per_s=4.0, on_s=60.0, off_s=120.0, quiet_ratio=0.1),
        ),
        (
            f"rate = 4\nhourly = {[1] * 23 + [3]}",
            Arrivals(rate_per_s=4.0, hourly_factor=(1.0,) * 23 + (3.0,)),
        ),
    ],
)
def test_rates_move_in_every_way_that_arrivals_know(read: Read, written: str, arrivals: Arrivals) -> None:
    assert read(ROOT + POOL + TRAFFIC.replace("rate = 5", written)).streams[0].traffic.arrivals == arrivals


def test_a_model_can_stand_in_a_config_beside_the_scenario(tmp_path: Path, shelf: Catalog) -> None:
    file = tmp_path / "s.toml"
    file.write_text(ROOT.replace("llama-3.1-8b", "my/config.json") + POOL + TRAFFIC)
    with pytest.raises(DatahallError, match="No such file"):
        read_file(file, shelf)
    (tmp_path / "my").mkdir()
    (tmp_path / "my" / "config.json").write_text(
        '{"model_type": "llama", "hidden_size": 1024, "intermediate_size": 4096, "num_hidden_layers": 4,'
        ' "num_attention_heads": 8, "vocab_size": 32000, "max_position_embeddings": 4096}'
    )
    assert read_file(file, shelf).model.num_layers == 4


def test_users_and_traces_are_traffic_too(tmp_path: Path, shelf: Catalog, read: Read) -> None:
    users = read(ROOT + POOL + '[traffic]\nusers = 8\nthink = "2 s"\nrequests = 60\nisl = 50\nosl = 10\n')
    assert simulate_service(users).run.num_finished == 60
    (tmp_path / "t.csv").write_text("arrival_s,prompt,output\n0,100,10\n1,100,10\n")
    file = tmp_path / "s.toml"
    file.write_text(ROOT + POOL + '[traffic]\ntrace = "t.csv"\nspeed = 2\n')
    run = simulate_service(read_file(file, shelf), record=True).run
    assert (run.num_finished, run.records.arrival_s.tolist()) == (2, [0.0, 0.5])


def streams(*columns: list[float]) -> list[Requests]:
    return [
        Requests.of(np.array(times), np.full(len(times), 10 + i), np.full(len(times), 5))
        for i, times in enumerate(columns)
    ]


TIMES = st.lists(st.floats(0, 50), min_size=1, max_size=12).map(sorted)


@given(st.lists(TIMES, min_size=2, max_size=3), st.integers(1, 5))
def test_streams_are_merged_by_arrival_whatever_their_chunks(times: list[list[float]], size: int) -> None:
    whole, cut = (
        join(chunk for chunk, _ in merge([in_chunks((one,), rows) for one in streams(*times)]))
        for rows in (100, size)
    )
    assert cut.arrival_s.tolist() == sorted(time for column in times for time in column)
    assert np.array_equal(whole.arrival_s, cut.arrival_s)
    assert sorted(zip(cut.arrival_s, cut.prompt, strict=True)) == sorted(
        (time, 10 + place) for place, column in enumerate(times) for time in column
    )
    assert np.unique(cut.session).size == len(cut)


def test_turns_follow_their_own_session_after_a_merge() -> None:
    talk = Traffic(
        prompt=Fixed(20), output=Fixed(5), arrivals=Arrivals(rate_per_s=2.0), num_requests=400,
        conversation=Conversation(num_turns=3.0, system_tokens=50),
    )  # fmt: skip
    lone = msgspec.structs.replace(talk, conversation=Conversation(), prompt=Fixed(33))
    merged, stream = zip(*merge([generate(talk, 1), generate(lone, 2)]), strict=True)
    rows, own = join(merged), np.concatenate(stream)
    later = np.flatnonzero(rows.after >= 0)
    assert later.size > 100
    assert np.all(rows.after[later] < later)
    assert np.array_equal(rows.session[later], rows.session[rows.after[later]])
    assert np.all(own[later] == 0)
    assert np.all(np.diff(rows.arrival_s[rows.after < 0]) >= 0)
    assert len(rows) == 800
    assert not set(rows.session[own == 0]) & set(rows.session[own == 1])
    assert np.array_equal(rows.prompt[own == 0], join(generate(talk, 1)).prompt)


def test_streams_of_one_scenario_are_independent_and_keep_their_region_and_priority(read: Read) -> None:
    traffic = "".join(
        f'[[traffic]]\nrate = 5\nrequests = 100\nregion = "{name}"\npriority = {urgency}\n'
        for name, urgency in (("eu", 0), ("us", 2))
    )
    pools = POOL + 'region = "eu"\n' + POOL + 'region = "us"\n'
    scenario = read(ROOT + REGIONS + pools + traffic)
    chunks, stream = zip(*requests_in_order(scenario), strict=True)
    rows, own = join(chunks), np.concatenate(stream)
    assert np.array_equal(rows.priority, 2 * own)
    gaps = [np.diff(rows.arrival_s[own == place]) for place in (0, 1)]
    assert not np.array_equal(*gaps)
    assert simulate_service(scenario).region.tolist() == own.tolist()


def test_no_two_streams_draw_the_same_and_the_first_keeps_the_seed(read: Read) -> None:
    """One stream alone is the run that it is beside others; each of them differs with the seed."""
    traffic = "[[traffic]]\nrate = 5\nrequests = 100\nisl = 200\nosl = 40\nspread = 0.5\n"

    def rows(seed: int) -> list[Requests]:
        service = read(f"{ROOT}seed = {seed}\n{POOL}{3 * traffic}")
        return [join(stream) for stream in drawn_streams(service)]

    one, again, other = rows(7), rows(7), rows(8)
    alone = read(f"{ROOT}seed = 7\n{POOL}{traffic}").streams[0].traffic
    assert np.array_equal(one[0].arrival_s, join(generate(alone, 7)).arrival_s)
    for place in range(3):
        assert np.array_equal(one[place].arrival_s, again[place].arrival_s)
        assert not np.array_equal(one[place].arrival_s, other[place].arrival_s)
        for before in (*one[:place], *other):
            assert not np.array_equal(before.arrival_s, one[place].arrival_s)
            assert not np.array_equal(before.prompt, one[place].prompt)


@pytest.mark.parametrize("think", ["", 'think = "2 s"\n'])
def test_users_ask_for_as_long_as_is_said(read: Read, think: str) -> None:
    """Each of them until then, and nobody after: what is under way still ends."""
    users = f"[traffic]\nusers = 8\n{think}isl = 50\nosl = 100\nrequests = 5000\n"
    short = simulate_service(read(ROOT + POOL + users + 'duration = "20 s"\n'), record=True).run
    whole = simulate_service(read(ROOT + POOL + users), record=True).run
    assert short.records is not None
    assert whole.records is not None
    last_s = float(short.records.arrival_s.max())
    assert 15.0 < last_s < 20.0
    assert short.num_finished == short.num_arrived < whole.num_arrived == 5000
    before = np.count_nonzero(whole.records.arrival_s < 15.0)  # later, rows may be those that somebody left
    assert np.count_nonzero(short.records.arrival_s < 15.0) == before
    assert short.num_arrived >= before


def test_a_number_of_requests_ends_users_before_their_time(read: Read) -> None:
    users = '[traffic]\nusers = 8\nisl = 50\nosl = 100\nrequests = 40\nduration = "1 h"\n'
    assert simulate_service(read(ROOT + POOL + users)).run.num_arrived == 40


def test_users_can_be_spread_over_regions_and_a_session_stays_in_its_own(read: Read) -> None:
    pools = POOL + 'region = "eu"\n' + POOL + 'region = "us"\n'
    users = (
        "[traffic]\nusers = 40\nisl = 50\nosl = 5\nrequests = 2000\nturns = 2\n"
        'region = { eu = "70 %", us = 0.3 }\n'
    )
    outcome = simulate_service(read(ROOT + REGIONS + pools + users))
    assert (outcome.region == 0).mean() == pytest.approx(0.7, abs=0.05)
    session = join(chunk for chunk, _ in requests_in_order(outcome.service)).session
    for one in np.unique(session)[:50]:
        assert np.unique(outcome.region[session == one]).size == 1


def test_distance_is_in_the_latency_of_those_who_are_far(read: Read) -> None:
    pool = POOL + 'region = "eu"\n'
    near, far = (
        simulate_service(read(ROOT + REGIONS + pool + TRAFFIC + f'region = "{name}"\n')).run
        for name in ("eu", "us")
    )
    # one way there, one way back, 39 ms more each than inside the region
    assert far.records.ttft_s.mean() - near.records.ttft_s.mean() == pytest.approx(2 * 39e-3, rel=0.05)


def test_distances_are_said_once_for_both_ways_or_for_each(read: Read) -> None:
    pool = POOL + 'region = "eu"\n'
    both = read(ROOT + REGIONS + pool + TRAFFIC + 'region = "eu"\n').fleet.distance_s
    assert both == ((1e-3, 40e-3), (40e-3, 0.0))
    each = REGIONS + 'to = { eu = "60 ms" }\n'
    assert read(ROOT + each + pool + TRAFFIC + 'region = "eu"\n').fleet.distance_s[1][0] == 60e-3


def test_a_failure_sends_requests_elsewhere(read: Read) -> None:
    fleet = ROOT + POOL + "replicas = 2\n"
    calm = simulate_service(read(fleet + TRAFFIC)).run
    gone = '[[failure]]\nreplicas = 0\nstart = "10 s"\nduration = "20 s"\n'
    lost = simulate_service(read(fleet + TRAFFIC + gone)).run
    assert lost.num_finished == calm.num_finished == 300
    assert lost.replicas.active_s[0] == pytest.approx(lost.replicas.active_s[1] - 20, abs=1e-6)
    drained = read(
        fleet + TRAFFIC + '[[failure]]\nreplicas = "0-1"\nstart = "9 s"\nduration = "1 s"\ndrain = true\n'
    )
    assert [one.replica for one in drained.fleet.outages] == [0, 1]
    assert simulate_service(drained).run.num_rerouted == 0


def test_what_fails_for_good_does_not_come_back(read: Read) -> None:
    fleet = ROOT + POOL + "replicas = 2\n" + TRAFFIC
    run = simulate_service(read(fleet + '[[failure]]\nreplicas = 0\nstart = "10 s"\n')).run
    assert run.num_finished == 300
    assert run.replicas.active_s[0] == pytest.approx(10.0)
    nobody = simulate_service(read(fleet + '[[failure]]\nreplicas = "0-1"\nstart = "10 s"\n')).run
    assert nobody.num_unfinished > 100
    assert nobody.duration_s < 100


def test_the_failure_of_a_region_takes_all_its_replicas(read: Read) -> None:
    pools = POOL + 'region = "eu"\n' + POOL + 'replicas = 2\nregion = "us"\n'
    text = ROOT + REGIONS + pools + TRAFFIC + 'region = "eu"\n'
    found = read(text + '[[failure]]\nregion = "us"\nstart = "1 s"\nduration = "2 s"\n').fleet.outages
    assert [one.replica for one in found] == [1, 2]


def test_a_fleet_scales_to_zero_and_the_next_request_waits_for_the_cold_start(read: Read) -> None:
    rule = '[router]\nautoscale = "0..3:8"\ninterval = "5 s"\ncold_start = "30 s"\npatience = "20 s"\n'
    traffic = '[traffic]\nisl = 200\nosl = 20\nrate = 2\nbusy = "30 s"\nlull = "3 min"\nduration = "30 min"\n'
    run = simulate_service(read(ROOT + POOL + traffic + rule), record=True).run
    assert run.scaling.num_active.min() == 0
    assert run.scaling.num_starting.max() >= 1
    assert run.num_unfinished == 0
    assert 30 < run.records.ttft_s.max() < 40  # the cold start, and at most one interval


CACHE = '[cache]\nquestions = 500\nprocess = 100\nshared = 10000\nshared_lookup = "4 ms"\n'


def outcomes(read: Read, more: str) -> tuple[Outcome, Outcome]:
    text = ROOT + POOL + TRAFFIC.replace("300", "3000").replace("rate = 5", "rate = 0.5")
    return simulate_service(read(text), record=True), simulate_service(read(text + more))


def test_a_cache_answers_what_it_should_and_misses_wait_for_it(read: Read) -> None:
    without, cached = outcomes(read, CACHE)
    cache = cached.service.cache
    assert cache.questions.rate_per_s == 0.5
    assert cache.semantic.hit_fraction == 0  # not said, no tier
    rates = hit_rates(cache)
    assert cached.run.num_answered / 3000 == pytest.approx(rates.total_fraction, abs=0.03)
    records = cached.run.records
    hit = cached.tier[records.row] > 0
    assert set(np.round(records.ttft_s[hit], 9)) == {50e-6, 4.05e-3}
    # An idle fleet: what a miss takes more is the look-up in both tiers, in its first token and in its last.
    plain = without.run.records
    assert records.ttft_s[~hit].min() - plain.ttft_s.min() == pytest.approx(4.05e-3, rel=1e-6)
    assert records.e2e_s[~hit].min() - plain.e2e_s.min() == pytest.approx(4.05e-3, rel=1e-6)


def test_the_engine_of_a_service_is_not_changed_by_its_cache(read: Read) -> None:
    _, cached = outcomes(read, CACHE)
    (pool,) = cached.service.fleet.pools
    assert pool.replica.engine == engine_on("vllm", pool.replica.chip)


def test_a_trace_with_block_keys_comes_alone() -> None:
    (plain,) = streams([0.0, 1.0])
    keyed = msgspec.structs.replace(
        plain, blocks=np.array([1, 2]), block_start=np.array([0, 1, 2]), block_tokens=16
    )
    assert len(next(merge([iter([keyed])]))[0]) == 2
    with pytest.raises(ScenarioError, match="block keys"):
        next(merge([iter([keyed]), iter([plain])]))


def test_the_closed_form_divides_the_load_over_the_ranks_of_all_replicas(read: Read) -> None:
    """Four data-parallel ranks a replica, two replicas: each rank sees an eighth of the requests."""
    moe = 'version = 1\nmodel = "qwen3-30b-a3b"\n'
    wide = '[[deployment]]\nchip = "h100-sxm"\nreplicas = {}\ntp = 1\ndp = {}\nep = {}\n'
    traffic = "[traffic]\nisl = 200\nosl = 40\nrate = {}\nrequests = 300\n"
    eight = read(moe + wide.format(2, 4, 4) + traffic.format(16)).steady
    other = read(moe + wide.format(1, 4, 4) + traffic.format(8)).steady
    assert eight is not None
    assert other is not None
    assert eight.rate_per_s == pytest.approx(2.0)
    assert (eight.ttft_s, eight.tpot_s) == pytest.approx((other.ttft_s, other.tpot_s))


def test_a_failure_of_two_pools_is_refused_where_the_first_scales(read: Read) -> None:
    pools = POOL + "replicas = 2\n" + POOL + "replicas = 2\n"
    scaled = '[router]\nautoscale = "1..4"\n'
    lost = '[[failure]]\nreplicas = {}\nstart = "1 s"\nduration = "1 s"\n'
    with pytest.raises(DatahallError, match="outside the first pool"):
        read(ROOT + pools + TRAFFIC + scaled + lost.format("[0, 3]"))
