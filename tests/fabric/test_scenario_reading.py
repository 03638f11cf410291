"""What a scenario's words become: fabric, jobs, background, failures, stalls; and what is refused where."""

from __future__ import annotations

import numpy as np
import pytest
from tests.fabric.test_scenario import CATALOG, FABRIC, JOB, problems, read

from datahall.errors import ScenarioError
from datahall.fabric.flows import outcome
from datahall.fabric.flows.asked import endpoints
from datahall.fabric.flows.outcome import FlowScenario, simulate_flows
from datahall.fabric.flows.simulate import Changes, Flows, followers, merged, simulate
from datahall.fabric.topology.clos import clos
from datahall.fabric.topology.graph import SCALE_UP, Paths, Wire
from datahall.scenario.kinds import Numbers, Raw, Reading

BARE = "version = 1\n[fabric]\n"


def built(words: str) -> FlowScenario:
    return read(BARE + words + '\n[[job]]\ncollective = "send-recv"\nranks = 2\nsize = "1 MB"\n')


@pytest.mark.parametrize(
    ("words", "topology", "hosts", "levels"),
    [
        ('topology = "fat-tree"\nchips = 16', "fat-tree", 16, 3),
        ('topology = "fat-tree"\nchips = 16\nradix = 8', "fat-tree", 16, 3),
        ('topology = "clos"\nchips = 64', "clos", 64, 1),
        ('topology = "clos"\nchips = 65', "clos", 65, 2),
        ('topology = "leaf-spine"\nchips = 64', "clos", 64, 2),
        ('topology = "clos"\nchips = 40\nradix = 8', "clos", 40, 3),
        ('topology = "tree"\nchips = 64', "tree", 64, 1),
        ('topology = "tree"\nchips = 65', "tree", 65, 2),
        ('topology = "scale-up"\nchips = 8', "scale-up", 8, 1),
        ('topology = "rail-optimised"\nchips = 128\nradix = 32', "rail-optimised", 128, 2),
        ('topology = "rail-optimised"\nchips = 64', "rail-optimised", 64, 1),
    ],
)
def test_a_fabric_of_alike_links_is_the_one_named(words: str, topology: str, hosts: int, levels: int) -> None:
    fabric = built(words + '\nbandwidth = "80 Gb/s"').net.fabric
    assert (fabric.topology, fabric.num_hosts, fabric.shape.num_levels) == (topology, hosts, levels)
    network = fabric.link_bytes_per_s[: fabric.scale_up_start if fabric.scale_up_start >= 0 else None]
    assert (network == 10e9).all() or topology == "scale-up"


def test_sides_oversubscription_and_domains_are_taken_up() -> None:
    assert built('topology = "torus"\nchips = 24\nsides = "2x3x4"\nbandwidth = "8 Gb/s"').net.fabric.shape.sides == (
        2, 3, 4,
    )  # fmt: skip
    assert built('topology = "torus"\nchips = 64\nbandwidth = "8 Gb/s"').net.fabric.shape.sides == (4, 4, 4)
    assert built('topology = "full-mesh"\nchips = 6\nbandwidth = "8 Gb/s"').net.fabric.num_links == 30
    assert (
        built('topology = "dragonfly"\nchips = 6\nradix = 7\nbandwidth = "8 Gb/s"').net.fabric.shape.terminals
        == 2
    )
    taper = built('topology = "clos"\nchips = 96\nradix = 64\noversubscription = "3:1"\nbandwidth = "8 Gb/s"')
    assert taper.net.fabric.shape.children[0] == 48
    rails = built(
        'topology = "rail-optimised"\nchips = 128\nradix = 32\ndomain = 4\nbandwidth = "8 Gb/s"'
    ).net.fabric
    assert (rails.shape.rails, rails.num_domains) == (4, 32)
    eight = built('topology = "rail-optimised"\nchips = 128\nradix = 32\nbandwidth = "8 Gb/s"').net.fabric
    assert eight.shape.rails == 8


def test_links_have_the_latency_given_or_half_a_microsecond() -> None:
    words = 'topology = "clos"\nchips = 16\ndomain = 4\nbandwidth = "8 Gb/s"\n'
    plain = built(words).net.fabric
    assert (plain.link_latency_s == 500e-9).all()
    inside = plain.link_kind == SCALE_UP
    assert inside.sum() == 32
    assert (plain.link_bytes_per_s[inside] == 450e9).all()
    told = built(words + 'latency = "2 us"\nscale_up = "80 Gb/s"\nscale_up_latency = "3 us"\n').net.fabric
    assert (told.link_latency_s == np.where(inside, 3e-6, 2e-6)).all()
    assert (told.link_bytes_per_s == np.where(inside, 10e9, 1e9)).all()


def test_parts_of_the_catalogue_are_used_where_no_bandwidth_is_given() -> None:
    found = built('topology = "fat-tree"\nchips = 1024\nchip = "h100-sxm"\ntiers = 3\nradix = 32').net.fabric
    assert found.shape.num_levels == 3
    assert found.num_domains == 128
    said = problems(BARE + 'topology = "tpu-pod"\nchips = 64\nbandwidth = "8 Gb/s"\n' + JOB)
    assert "tpu-pod is made of parts of the catalogue" in said
    said = problems(BARE + 'topology = "torus"\nchips = 9\nsides = "2x4"\nbandwidth = "1 Gb/s"\n' + JOB)
    assert "2x4 has 8 chips, not 9" in said


def test_what_is_left_out_has_its_usual_value() -> None:
    found = read(
        FABRIC.replace("seed = 3\n", "").replace('name = "test"\n', "") + JOB.replace('name = "train"', "")
    )
    assert found.net.seed == 0
    assert (found.net.routing.policy, found.net.routing.num_parts) == ("ecmp", 1)
    carrier = found.net.carrier
    assert (carrier.transport.name, carrier.virtual_lanes, carrier.loss_fraction) == ("infiniband", 2, 0.0)
    assert (carrier.selective_repeat, carrier.stuck_s) == (False, carrier.transport.stuck_s)
    (job,) = found.jobs
    assert (job.name, job.start_s, job.repeat, job.pause_s, job.message_s) == (
        "all-reduce 0",
        0.0,
        1,
        0.0,
        0.0,
    )
    assert found.asks[0].algorithm == "ring"
    assert found.changes.at_s.size == 0


def test_what_is_given_is_taken() -> None:
    words = '[network]\nrouting = "ecmp"\npaths = 3\ntransport = "lossy"\nloss = "1 %"\n'
    more = 'start = "1 ms"\nrepeat = 2\npause = "2 ms"\noverhead = "3 us"\nalgorithm = "tree"\n'
    found = read(
        FABRIC + words + 'selective_repeat = true\nwatchdog = "1 s"\n' + JOB + more + "[[stall]]\nchip = 1\n"
    )
    assert (found.net.routing.policy, found.net.routing.num_parts, found.net.seed) == ("ecmp", 3, 3)
    carrier = found.net.carrier
    assert (carrier.transport.name, carrier.loss_fraction) == ("tcp", 0.01)
    assert (carrier.selective_repeat, carrier.stuck_s) == (True, 1.0)
    (job,) = found.jobs
    assert (job.name, job.start_s, job.repeat, job.pause_s, job.message_s) == ("train", 1e-3, 2, 2e-3, 3e-6)
    assert job.hosts.tolist() == list(range(32))
    assert found.asks[0].algorithm == "tree"
    assert found.asks[0].size_bytes == 64e6


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("radix = 1", "radix: 1 is too small; it must be at least 2"),
        ("domain = 0", "domain: 0 is too small; it must be at least 1"),
        ("domain = 5", "no whole number of scale-up domains of 5"),
        ('scale_up = "0 Gb/s"', "scale_up: 0 Gb/s is too small; it must be at least 1 kB/s"),
        ('flavour = "x"', 'unknown key "flavour"'),
        ("[network]\npaths = 0", "paths: 0 is too small; it must be at least 1"),
        ("[network]\npaths = 1.5", "paths: 1.5 is not a whole number"),
        ("[network]\nlanes = 0", "lanes: 0 is too small; it must be at least 1"),
        ("[network]\nloss = 1.5", "loss: 1.5 is out of bounds; at least 0 % and below 100 %"),
        ("[network]\nloss = -0.1", "loss: -0.1 is out of bounds; at least 0 % and below 100 %"),
        ('[network]\ntransport = "lossy"\nloss = 1', "loss: 1 is out of bounds"),
        ("[network]\nloss = 0.1", "does not drop packets"),
        ("[network]\nloss = 0\nselective_repeat = 1", "selective_repeat: 1 cannot be read; true or false"),
        ("[network]\nrouting = 1", "routing: there is no 1; one of deterministic, ecmp, adaptive, spray"),
        ("[network]\nwatchdog = true", "watchdog: True cannot be read"),
        ('[network]\nwatchdog = "1 GB"', "watchdog: "),
        ('[network]\nflavour = "x"', 'unknown key "flavour"'),
    ],
)
def test_a_value_out_of_range_is_refused_with_its_range(line: str, said: str) -> None:
    assert said in problems(FABRIC + line + "\n" + JOB)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "nothing is sent"),
        (JOB.replace('size = "64 MB"', 'size = "0 B"'), "size: 0 B is too small; it must be above 0"),
        (JOB + "repeat = 0", "repeat: 0 is too small; it must be at least 1"),
        (JOB.replace('"0-31"', "1.5"), "ranks: 1.5 cannot be read"),
        ("job = 1" + FABRIC, "job must be a table; write [[job]]"),
        (JOB + '[[background]]\npattern = "incast"\nhosts = 1\nsize = "1 MB"\n', "two endpoints or more"),
        (JOB + '[[background]]\npattern = "random"\nsize = "1 B"\n', "about 960,000,000 background flows"),
        (JOB + '[[background]]\npattern = "random"\nsize = "1 MB"\nload = 0\n',
         "load: 0 is out of bounds; above 0 % and at most 100 %"),
        (JOB + '[[failure]]\nstart = "1 s"\nduration = "0 s"\nchips = 1\n',
         "duration: 0 s is too small; it must be above 0"),
        (JOB + '[[failure]]\nstart = "1 s"\nlinks = 999999\n', "no link 999999"),
        (JOB + '[[failure]]\nstart = "1 s"\nleft = 1.1\nchips = 1\n', "left: 1.1 is out of bounds"),
        (JOB + '[[stall]]\nchip = 64\nstart = "1 s"\n', "chip 64 is not there; 0 to 63"),
        (JOB + '[[background]]\npattern = "incast"\ntarget = 64\nsize = "1 MB"\n',
         "target: endpoint 64 is not there; the fabric has 0 to 63"),
    ],
)  # fmt: skip
def test_traffic_that_makes_no_sense_is_refused(text: str, said: str) -> None:
    whole = text if text.startswith("job = 1") else FABRIC + text
    assert said in problems(whole)


def test_the_last_of_everything_is_still_there() -> None:
    found = read(
        FABRIC + JOB + '[[stall]]\nchip = 63\nstart = "1 s"\n'
        '[[background]]\npattern = "incast"\ntarget = 63\nsize = "1 MB"\n[[failure]]\nstart = "1 s"\nnics = 63\n'
    )
    (stall,) = found.stalls
    assert found.net.fabric.link_target[stall.link] == 63
    assert (stall.start_s, stall.end_s) == (1.0, np.inf)
    assert (found.bursts[0].target == 63).all()
    assert found.bursts[0].source.tolist() == list(range(63))


def test_background_is_a_permutation_an_incast_or_random() -> None:
    text = (
        FABRIC + '[[background]]\npattern = "permutation"\nhosts = "8-15"\nsize = "2 MB"\nstart = "1 ms"\n'
        '[[background]]\npattern = "incast"\nhosts = "8-15"\nsize = "3 MB"\n'
        '[[background]]\nname = "noise"\npattern = "random"\nhosts = "8-15"\nload = 0.5\nsize = "10 kB"\n'
        'until = "40 ms"\n'
        '[[background]]\npattern = "random"\nsize = "10 MB"\nuntil = "100 ms"\n'
    )
    mixed, incast, noise, usual = read(text).bursts
    assert [burst.name for burst in (mixed, incast, noise)] == ["permutation 0", "incast 1", "noise"]
    assert set(mixed.source) == set(mixed.target)
    assert (mixed.num_bytes == 2e6).all()
    assert (mixed.start_s == 1e-3).all()
    assert (incast.target == 8).all()
    assert incast.source.tolist() == list(range(9, 16))
    assert (incast.start_s == 0.0).all()
    # eight hosts offer half of 50 GB/s for 40 ms in pieces of 10 kB: 800,000 of them, give or take 900
    assert noise.source.size == pytest.approx(800_000, abs=5 * 900)
    assert (noise.source != noise.target).all()
    assert set(noise.source) == set(noise.target) == set(range(8, 16))
    assert (np.diff(noise.start_s) >= 0).all()
    assert 0 <= noise.start_s.min() <= noise.start_s.max() <= 40e-3
    assert noise.start_s.mean() == pytest.approx(20e-3, rel=0.01)
    assert usual.source.size == pytest.approx(0.3 * 50e9 * 64 * 0.1 / 10e6, rel=0.05)


def test_a_failure_takes_its_links_down_and_the_repair_brings_them_back() -> None:
    found = read(FABRIC + JOB + '[[failure]]\nstart = "1 ms"\nduration = "2 ms"\nleft = "25 %"\nchips = 5\n')
    fabric, changes = found.net.fabric, found.changes
    own = np.flatnonzero((fabric.link_source == 5) | (fabric.link_target == 5))
    assert changes.at_s.tolist() == [1e-3] * 2 + [3e-3] * 2
    assert changes.link.tolist() == own.tolist() * 2
    assert changes.bytes_per_s.tolist() == [12.5e9] * 2 + [50e9] * 2
    gone = read(FABRIC + JOB + '[[failure]]\nstart = "1 ms"\nchips = 5\n').changes
    assert gone.bytes_per_s.tolist() == [0.0, 0.0]


def test_a_failure_that_names_several_parts_takes_them_all() -> None:
    one, other, both = (
        set(read(FABRIC + JOB + '[[failure]]\nstart = "1 s"\n' + parts).changes.link.tolist())
        for parts in ("chips = 1\n", "nics = 7\n", "chips = 1\nnics = 7\n")
    )
    assert both == one | other
    assert not one & other


def test_many_flows_are_simulated_in_coarse_grains_and_few_exactly(monkeypatch: pytest.MonkeyPatch) -> None:
    scenario = read(FABRIC + JOB)
    exact = simulate_flows(scenario)
    assert exact.grain_fraction == 0.0
    monkeypatch.setattr(outcome, "MANY_FLOWS", exact.traffic.flows.num_flows)
    assert simulate_flows(scenario).grain_fraction == 0.0
    monkeypatch.setattr(outcome, "MANY_FLOWS", exact.traffic.flows.num_flows - 1)
    coarse = simulate_flows(scenario)
    assert coarse.grain_fraction == 0.01
    assert coarse.run.makespan_s == pytest.approx(simulate_flows(scenario, "full").run.makespan_s, rel=0.05)


def test_one_lane_blocks_and_two_do_not() -> None:
    """Chips 0 and 1 send to 2, chip 0 also to 3: with one lane the second flow waits behind the first."""
    sends = "".join(
        f'[[job]]\nname = "{a}{b}"\ncollective = "send-recv"\nranks = [{a}, {b}]\nsize = "10 MB"\n'
        for a, b in ((0, 2), (1, 2), (0, 3))
    )
    words = '[network]\nrouting = "deterministic"\n'
    two, one = (simulate_flows(read(FABRIC + words + f"lanes = {lanes}\n" + sends)) for lanes in (2, 1))
    assert one.traffic.head_of_line
    assert not two.traffic.head_of_line
    assert one.run.makespan_s >= two.run.makespan_s


RANKS = Numbers("", ranks=True)
FILE = Reading(catalog=CATALOG)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (2, [0, 1]), ("5-5", [5]), ([5], [5]), ("0-7:3", [0, 3, 6]), ("1,3-4", [1, 3, 4]), (["0-1", 5], [0, 1, 5]),
        ("2:4", [2]),
    ],
)  # fmt: skip
def test_endpoints_are_counts_ranges_and_lists(text: Raw, expected: list[int]) -> None:
    assert list(RANKS.read(text, FILE)) == expected


@pytest.mark.parametrize("bad", [0, 10_000_002, "0-10000001", "1-2:0", "1--2", None, ["x"], [-1]])
def test_endpoints_that_cannot_be(bad: Raw) -> None:
    with pytest.raises(ScenarioError):
        RANKS.read(bad, FILE)


def test_endpoints_are_those_of_the_fabric() -> None:
    four = clos(4, Wire(1e9, 0.0), radix=4)
    assert endpoints((0, 3), four, "ranks").tolist() == [0, 3]
    assert endpoints((), four, "ranks").tolist() == [0, 1, 2, 3]
    with pytest.raises(ScenarioError, match="ranks: endpoint 4 is not there"):
        endpoints((0, 4), four, "ranks")


def line(count: int = 2, **more: object) -> Flows:
    paths = Paths(np.zeros(count, np.int32), np.arange(count + 1))
    return Flows(**{"paths": paths, "num_bytes": np.ones(count)} | more)


@pytest.mark.parametrize(
    ("flows", "said"),
    [
        (line(start_s=np.array([0.0, np.inf])), "start of flow 1 is inf"),
        (line(delay_s=np.array([-1.0, 0.0])), "delay of flow 0 is -1"),
        (line(after=np.array([-1], np.int32), after_offsets=np.array([0, 0, 1])), "waits for flow"),
        (line(after=np.array([2], np.int32), after_offsets=np.array([0, 0, 1])), "waits for flow 2"),
        (line(after=np.array([0, 2], np.int32), after_offsets=np.array([0, 0, 2])), "waits for flow 2"),
        (line(after=np.array([0], np.int32), after_offsets=np.array([0, 1, 0])), "one row per flow"),
        (line(after=np.array([0], np.int32), after_offsets=np.array([0, 0, 2])), "one row per flow"),
        (line(weight=np.array([1.0, -1.0])), "weight of flow 1"),
        (line(share_fraction=np.array([1.0, 0.0])), "share of flow 1"),
        (line(paths=Paths(np.array([0, -1], np.int32), np.arange(3))), "passes link -1"),
        (line(paths=Paths(np.array([0, 1], np.int32), np.arange(3))), "passes link 1"),
    ],
)
def test_flows_that_cannot_be_simulated_are_refused(flows: Flows, said: str) -> None:
    with pytest.raises(ScenarioError, match=said):
        simulate(flows, np.ones(1))


@pytest.mark.parametrize(
    ("at_s", "link", "rate"),
    [([-1.0], [0], [1.0]), ([1.0], [-1], [1.0]), ([1.0], [1], [1.0]), ([1.0], [0], [np.nan]),
     ([0.0, 1.0], [-1, 0], [1.0] * 2), ([0.0, 1.0], [0, 1], [1.0] * 2)],
)  # fmt: skip
def test_changes_that_cannot_happen_are_refused(
    at_s: list[float], link: list[int], rate: list[float]
) -> None:
    with pytest.raises(ScenarioError):
        simulate(
            line(), np.ones(1), changes=Changes(np.array(at_s), np.array(link, np.int32), np.array(rate))
        )


def test_followers_are_the_waits_turned_round() -> None:
    flows = line(4, after=np.array([0, 1, 0, 2], np.int32), after_offsets=np.array([0, 0, 0, 2, 4]))
    waiting, follower, offsets = followers(flows)
    assert waiting.tolist() == [0, 0, 2, 2]
    assert [follower[offsets[i] : offsets[i + 1]].tolist() for i in range(4)] == [[2, 3], [2], [3], []]


def test_changes_are_merged_in_order_of_time_and_of_naming() -> None:
    one = Changes(np.array([1.0, 3.0]), np.array([0, 1], np.int32), np.array([10.0, 11.0]))
    other = Changes(np.array([0.0, 3.0]), np.array([2, 1], np.int32), np.array([12.0, 13.0]))
    found = merged(one, other)
    assert found.at_s.tolist() == [0.0, 1.0, 3.0, 3.0]
    assert found.link.tolist() == [2, 0, 1, 1]
    assert found.bytes_per_s.tolist() == [12.0, 10.0, 11.0, 13.0]


def test_who_waits_for_a_flow_that_is_stuck_is_stuck_and_not_an_error() -> None:
    flows = line(after=np.array([0], np.int32), after_offsets=np.array([0, 0, 1]))
    run = simulate(flows, np.zeros(1))
    assert run.num_stuck == 2
    assert np.isnan(run.ready_s[1])
    assert run.slowest in (0, 1)
    assert simulate(flows, np.ones(1), until_s=0.5).left_bytes.tolist() == [0.5, 1.0]
