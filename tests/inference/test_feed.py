"""Traffic on its way into the simulation, and what is refused there."""

from __future__ import annotations

import gc
import weakref
from types import SimpleNamespace
from typing import Any

import msgspec
import numpy as np
import pytest
from tests.inference.serving_case import fleet, poisson, replica, table

from datahall.errors import ScenarioError, UnknownNameError
from datahall.inference.fleet.autoscale import Autoscaling, Scaler, wanted_replicas
from datahall.inference.fleet.fleet import Fleet, Pool, ReplicaOutage
from datahall.inference.fleet.merged_traffic import merge, with_priority
from datahall.inference.simulation import feed as feeding
from datahall.inference.simulation.feed import Feed, shares_prefixes
from datahall.inference.simulation.result import stability
from datahall.inference.simulation.simulate import simulate_serving
from datahall.inference.simulation.state import FLEET
from datahall.workload.traffic.requests import Requests
from datahall.workload.traffic.shapes import Fixed
from datahall.workload.traffic.traffic import Traffic, generate
from datahall.workload.traffic.users import Users


def some(num: int = 3, **columns: list[float]) -> Requests:
    found = Requests.of(np.arange(float(num)), np.full(num, 10), np.full(num, 5))
    return msgspec.structs.replace(found, **{name: np.array(column) for name, column in columns.items()})


@pytest.mark.parametrize(
    ("columns", "why"),
    [
        ({"prompt": [10, 0, 10]}, "request 1 has prompt = 0"),
        ({"output": [5, 5, 0]}, "request 2 has output = 0"),
        ({"arrival_s": [-0.5, 1.0, 2.0]}, "request 0 has arrival_s = -0.5"),
        ({"arrival_s": [0.0, np.nan, 2.0]}, "request 1 has arrival_s = nan"),
        ({"arrival_s": [0.0, 2.0, 1.0]}, "order of their arrival"),
    ],
)
def test_lengths_and_times_that_make_no_sense_are_refused(columns: dict[str, list[float]], why: str) -> None:
    with pytest.raises(ScenarioError, match=why):
        Feed(some(**columns)).next_rows()


def test_the_order_of_arrival_holds_across_chunks_and_not_for_users() -> None:
    chunks = [some(arrival_s=[0.0, 1.0, 5.0]), some(arrival_s=[4.0, 6.0, 7.0])]
    feed = Feed(chunks)
    assert feed.next_rows() is not None
    with pytest.raises(ScenarioError, match="order of their arrival"):
        feed.next_rows()
    thinking = Feed(chunks, open_loop=False)
    assert thinking.next_rows() is not None
    assert thinking.next_rows() is not None
    assert thinking.next_rows() is None
    turns = some(arrival_s=[5.0, 1.0, 6.0], after=[-1, 0, -1])  # a turn's time is a pause
    assert Feed(turns).next_rows() is not None


def test_rows_are_numbered_through_and_columns_beside_them_are_cut_alike() -> None:
    feed = Feed(
        [some(2), some(3, arrival_s=[4.0, 5.0, 6.0])], cached_tokens=np.arange(5), region=np.arange(5) % 2
    )
    first, second = feed.next_rows(), feed.next_rows()
    assert first is not None
    assert second is not None
    assert [*first[0]["row"], *second[0]["row"]] == [0, 1, 2, 3, 4]
    assert [*first[0]["cached"], *second[0]["cached"]] == [0, 1, 2, 3, 4]
    assert [*first[0]["region"], *second[0]["region"]] == [0, 1, 0, 1, 0]
    assert first[0]["answer_s"].tolist() == [-1.0, -1.0]
    assert first[0]["luck"].tolist() == [0.0, 0.0]


def test_columns_that_are_too_short_are_refused() -> None:
    with pytest.raises(ScenarioError, match="2 values for at least 3"):
        Feed(some(3), cached_tokens=np.arange(2)).next_rows()
    assert Feed(some(3), cached_tokens=np.arange(3)).next_rows() is not None


def test_rows_come_in_pieces_that_fit_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feeding, "CHUNK", 4)
    feed = Feed(some(10))
    sizes = []
    while (more := feed.next_rows()) is not None:
        sizes.append(more[0].size)
        assert more[1].size == more[2].size == 0
    assert sizes == [4, 4, 2]


def test_turns_that_follow_are_told_the_place_of_the_one_before() -> None:
    found = Feed(some(5, after=[-1, 0, -1, 1, 2])).next_rows()
    assert found is not None
    own, following, before = found
    assert own["row"].tolist() == [0, 2]
    assert following["row"].tolist() == [1, 3, 4]
    # places: rows 0 and 2 are 0 and 1, the turns 1, 3 and 4 are 2, 3 and 4
    assert before.tolist() == [0, 2, 1]


def test_keys_of_several_chunks_stand_behind_each_other() -> None:
    chunk = some(2, blocks=[7, 8, 9], block_start=[0, 2])
    chunk = msgspec.structs.replace(chunk, block_tokens=512)
    later = msgspec.structs.replace(chunk, arrival_s=np.array([5.0, 6.0]))
    feed = Feed([chunk, later])
    for _ in range(2):
        more = feed.next_rows()
        assert more is not None
        held = [feed.keys[one["key_start"] : one["key_start"] + one["key_count"]].tolist() for one in more[0]]
        assert held == [[7, 8], [9]]
    assert feed.explicit_tokens == 512


def test_priorities_are_noticed() -> None:
    for priority, expected in (([0, 0, 0], False), ([0, 1, 0], True)):
        feed = Feed(some(priority=priority))
        feed.next_rows()
        assert feed.any_priority == expected
    feed = Feed([some(priority=[0, 1, 0]), some(arrival_s=[3.0, 4.0, 5.0])])
    feed.next_rows()
    feed.next_rows()
    assert feed.any_priority  # those of the first chunk are still there


@pytest.mark.parametrize(
    ("columns", "shares"),
    [
        ({}, False),
        ({"group": [0, 0, 0]}, False),  # of no tokens
        ({"group": [0, -1, -1], "shared": [5, 0, 0]}, True),
        ({"group": [-1, -1, -1], "shared": [5, 5, 5]}, False),
        ({"session": [4, 4, 5]}, True),
        ({"session": [4, 2, 5]}, False),
        ({"session": [5, 4, 5]}, True),
        ({"after": [-1, 0, -1]}, True),
        ({"blocks": [1], "block_start": [0, 1, 1]}, True),
    ],
)
def test_requests_that_begin_alike_are_noticed(columns: dict[str, list[float]], shares: bool) -> None:
    assert shares_prefixes(some(**columns)) == shares


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"pools": ()}, "without replicas"),
        ({"count": 0}, "without replicas"),
        ({"roles": ("prefill",)}, "the role prefill do not"),
        ({"roles": ("prefill", "both")}, "roles both, prefill do not"),
        ({"roles": ("decode", "both")}, "roles both, decode do not"),
        ({"distance_s": ((0.0, 1.0),)}, "not a square table"),
        ({"region": 1}, "region 1, but distances are given for 1"),
        ({"region": -1}, "region -1"),
        (
            {"outages": (ReplicaOutage(replica=1, start_s=0.0, duration_s=1.0),)},
            "replica 1, but the fleet has 1",
        ),
        ({"outages": (ReplicaOutage(replica=-1, start_s=0.0, duration_s=1.0),)}, "replica -1"),
    ],
)
def test_a_fleet_that_cannot_be_is_refused(changes: dict[str, object], why: str) -> None:
    roles = changes.pop("roles", ("both",)) if "roles" in changes else ("both",)
    own = {name: changes.pop(name) for name in ("count", "region") if name in changes}
    pools = tuple(Pool(replica=replica(), role=role, **own) for role in roles)  # type: ignore[arg-type, attr-defined]
    with pytest.raises(ScenarioError, match=why):
        Fleet(**{"pools": pools, **changes})  # type: ignore[arg-type]


def test_fleets_that_make_a_whole() -> None:
    for roles in (("both",), ("prefill", "decode"), ("prefill", "decode", "both"), ("both", "both")):
        pools = tuple(
            Pool(replica=msgspec.structs.replace(replica(), tp=2), count=3, role=role) for role in roles
        )  # type: ignore[arg-type]
        whole = Fleet(
            pools=pools, outages=(ReplicaOutage(replica=3 * len(roles) - 1, start_s=0.0, duration_s=1.0),)
        )
        assert (whole.num_replicas, whole.num_chips) == (3 * len(roles), 6 * len(roles))
    with pytest.raises(UnknownNameError, match="session"):
        fleet(routing="sesion")


def test_static_batches_cannot_be_handed_over() -> None:
    with pytest.raises(ScenarioError, match="static batching cannot hand"):
        Pool(replica=replica(batching="static"), role="prefill", table=table(), num_blocks=100)
    assert Pool(replica=replica(batching="static"), table=table(), num_blocks=100).role == "both"


@pytest.mark.parametrize(("users", "until_s"), [(-1, 10.0), (0, 0.0), (0, -1.0), (0, np.nan)])
def test_no_negative_users_and_no_time_before_the_start(users: int, until_s: float) -> None:
    with pytest.raises(ScenarioError, match="users until"):
        simulate_serving(fleet(), some(), users=users, until_s=until_s)


def test_no_traffic_is_refused_however_it_comes() -> None:
    for traffic in (some(0), [], [some(0)]):
        with pytest.raises(ScenarioError, match="no request comes"):
            simulate_serving(fleet(), traffic)


@pytest.mark.parametrize(
    ("requests", "wanted"), [(0, 1), (1, 1), (10, 1), (11, 2), (45, 5), (80, 8), (999, 8)]
)
def test_replicas_are_requests_over_the_target_rounded_up(requests: int, wanted: int) -> None:
    assert wanted_replicas(Autoscaling(target=10.0, least=1, most=8), requests) == wanted
    assert wanted_replicas(Autoscaling(target=10.0, least=0, most=8), 0) == 0


def test_it_grows_at_once_and_shrinks_when_less_was_enough_for_a_while() -> None:
    scaler = Scaler(Autoscaling(target=10.0, patience_s=30.0, least=1, most=8))
    decided = [
        scaler.decide(now, num) for now, num in ((0.0, 10), (10.0, 50), (20.0, 20), (40.0, 20), (40.5, 20))
    ]
    assert decided == [1, 5, 5, 5, 2]
    assert scaler.decide(71.0, 0) == 1


def test_streams_are_merged_by_arrival_and_keep_their_sessions_apart() -> None:
    left = msgspec.structs.replace(some(3, arrival_s=[0.0, 2.0, 4.0]), group=np.array([0, -1, 1]))
    right = some(2, arrival_s=[1.0, 3.0], session=[0, 1])
    chunks = list(merge([iter([left]), iter([right])]))
    arrival = np.concatenate([chunk.arrival_s for chunk, _ in chunks])
    stream = np.concatenate([whose for _, whose in chunks])
    session = np.concatenate([chunk.session for chunk, _ in chunks])
    group = np.concatenate([chunk.group for chunk, _ in chunks])
    assert arrival.tolist() == [0.0, 1.0, 2.0, 3.0, 4.0]
    assert stream.tolist() == [0, 1, 0, 1, 0]
    assert len(set(session.tolist())) == 5
    assert group.tolist()[1::2] == [-1, -1]
    assert group[2] == -1
    assert len({int(group[0]), int(group[4])}) == 2


def test_turns_of_merged_streams_still_follow_their_own() -> None:
    left = some(3, arrival_s=[1.0, 9.0, 2.0], after=[-1, 0, -1])
    right = some(3, arrival_s=[0.5, 1.5, 7.0], after=[-1, -1, 1])
    for chunk, stream in merge([iter([left]), iter([right])]):
        for row in range(len(chunk)):
            before = int(chunk.after[row])
            if before >= 0:
                assert stream[before] == stream[row]
                assert before < row
                assert chunk.arrival_s[row] == (9.0 if stream[row] == 0 else 7.0)
                assert chunk.arrival_s[before] == (1.0 if stream[row] == 0 else 1.5)


def test_a_trace_with_keys_is_played_alone() -> None:
    keyed = some(2, blocks=[1, 2], block_start=[0, 1])
    with pytest.raises(ScenarioError, match="block keys cannot be mixed"):
        list(merge([iter([keyed]), iter([some(2)])]))
    assert len(list(merge([iter([keyed])]))) == 1


def test_an_urgency_is_added_to_that_of_each() -> None:
    assert with_priority(some(priority=[0, 1, 2]), 3).priority.tolist() == [3, 4, 5]
    plain = some()
    assert with_priority(plain, 0) is plain


def test_more_requests_than_slots_or_records_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Room is made while the run goes on: as many requests wait, and as many rows are written, as come."""
    requests = Requests.of(np.zeros(300), np.full(300, 40), np.full(300, 3))
    served = fleet(max_sequences=4)
    roomy = simulate_serving(served, requests, record=True, compiled=False)
    monkeypatch.setattr("datahall.inference.simulation.simulate.NUM_SLOTS", 8)
    monkeypatch.setattr("datahall.inference.simulation.setup.NUM_RECORDS", 40)
    tight = simulate_serving(served, requests, record=True, compiled=False)
    assert roomy.records is not None
    assert tight.records is not None
    assert np.array_equal(roomy.records.end_s, tight.records.end_s)
    assert tight.records.row.tolist() == list(range(300))


@pytest.mark.parametrize(
    ("slope", "users", "num", "stable", "sustained"),
    [
        (0.5, 0, 400, False, 1.5),  # two come each second, and half a request a second stays
        (0.0, 0, 400, True, 2.0),
        (0.059, 0, 400, True, 2.0),  # three of a hundred may stay by chance
        (0.061, 0, 400, False, 1.939),
        (0.5, 8, 400, True, 1.0),  # users wait for their answers: what is served is what holds
        (0.5, 0, 199, True, 0.4975),  # too few to tell
        (0.5, 0, 200, False, 1.5),
        (1.9, 0, 400, False, 1.0),  # no less than what was served
    ],
)
def test_a_queue_that_grows_is_more_than_the_fleet_carries(
    slope: float, users: int, num: int, stable: bool, sustained: float
) -> None:
    """Arrivals every half second find a queue on a line; a request a second is served in the whole of 400 s."""
    at = np.arange(1, num + 1) / 2.0
    queued = 3.0 + slope * at
    whole = np.zeros(1, FLEET)
    whole["num_arrived"], whole["last_arrival_s"], whole["users"] = num, at[-1], users
    whole["sum_t"], whole["sum_tt"] = at.sum(), (at**2).sum()
    whole["sum_q"], whole["sum_tq"] = queued.sum(), (at * queued).sum()
    state: Any = SimpleNamespace(fleet=whole)
    found = stability(state, 400 if num == 400 else num, 400.0)
    assert found[0] == stable
    assert found[1] == pytest.approx(sustained, rel=1e-6)


def test_too_much_traffic_is_noticed() -> None:
    assert simulate_serving(fleet(), poisson(300, 20.0, 300, 60), compiled=False).stable
    assert not simulate_serving(fleet(), poisson(300, 400.0, 300, 60), compiled=False).stable


def test_a_run_that_ends_early_leaves_nothing_behind() -> None:
    """Rows, and the traffic that drew them, go with the last name for them, whether or not all were asked for."""
    asked = Traffic(users=Users(num=3), num_requests=50, prompt=Fixed(9), output=Fixed(9))
    drawn = generate(asked, 0)
    fed = Feed(drawn, open_loop=False)
    left = [weakref.ref(fed), weakref.ref(drawn)]
    gc.disable()
    try:
        assert fed.next_rows() is not None
        del fed, drawn
        assert [one() for one in left] == [None, None]
    finally:
        gc.enable()
