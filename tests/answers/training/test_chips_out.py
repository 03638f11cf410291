"""A plan leaves chips that have failed idle, and what it cannot place beside them, and says so."""

from __future__ import annotations

import pytest
from tests.answers.borders import followed

import datahall as dh
from datahall.answer import Answer
from datahall.catalog import Catalog
from datahall.cluster.gone import gone_of
from datahall.cluster.wiring import Wiring
from datahall.errors import InfeasibleError, ScenarioError
from datahall.scenario.sections.fabric import FabricDesign
from datahall.scenario.sections.failure import Failure

SHELF = Catalog(user=False)


def planned(chips: int, on: str = "fat-tree", **asked: object) -> Answer:
    found = dh.plan_train("llama-3.1-8b", tokens="1T", chips=chips, on=on, **asked, catalog=SHELF)  # type: ignore[arg-type]
    assert isinstance(found, Answer)
    return found


@pytest.mark.parametrize(
    ("failure", "out", "left"),
    [
        ({"chips": (5,)}, 1, 63),  # of its server, the other seven still work
        ({"chips": (5, 6)}, 2, 62),
        ({"chips": (5, 9)}, 2, 55),  # of two servers of seven one is used
        ({"domains": (1,)}, 8, 56),
        ({"chips": (5,), "left_fraction": 0.5}, 0, 64),  # slow, not gone
        ({"nics": (5,)}, 0, 64),
        ({"chips": (5,), "nics": (9,)}, 1, 63),  # chip 9 has lost its port and still works
        ({"chips": (5,), "domains": (1,)}, 9, 55),  # six whole servers, and seven chips of the first
    ],
)
def test_layouts_are_placed_on_whole_servers_and_one_in_part(
    failure: dict[str, object], out: int, left: int
) -> None:
    assert counted_out(Failure(**failure)) == (out, left)  # type: ignore[arg-type]


def counted_out(*failures: Failure) -> tuple[int, int]:
    """Of 64 chips in servers of eight, how many are out and how many are left to layouts."""
    found = gone_of(Wiring(FabricDesign(topology="fat-tree", chips=64), failures), SHELF, 64)
    return found.num_out, found.num_left


@pytest.mark.parametrize("order", [1, -1])
def test_what_several_failures_take_is_out_together(order: int) -> None:
    """Chips 5 and 9 stand in two servers, of whose seven left only one's are used: 48 + 7, whichever failed first."""
    both = (Failure(chips=(5,)), Failure(chips=(9,)))[::order]
    assert counted_out(*both) == (2, 55)
    server_and_chip = (Failure(domains=(1,)), Failure(chips=(5,)))[::order]
    assert counted_out(*server_and_chip) == (9, 55)
    assert counted_out(*(Failure(chips=(5,)), Failure(nics=(9,)))[::order]) == (1, 63)


def test_what_else_a_failure_takes_is_felt_beside_its_chips() -> None:
    """The second server has lost every port, so its eight chips reach nobody: leaving out chip 5 does not mend that."""
    model, on = "llama-3.1-70b", {"chips": 128, "on": "fat-tree"}
    with pytest.raises(InfeasibleError, match="cuts off 8 of 128"):
        dh.plan_train(model, tokens="1T", **on, failure={"chips": 5, "nics": "8-15"}, catalog=SHELF)  # type: ignore[arg-type]
    wiring = Wiring(FabricDesign(topology="fat-tree", chips=64), (Failure(chips=(5,), nics=(9,)),))
    (kept,) = gone_of(wiring, SHELF, 64).wiring.failures
    assert (kept.chips, kept.domains, kept.nics) == ((), (), (9,))


def test_a_failure_of_chips_alone_leaves_nothing_to_feel() -> None:
    wiring = Wiring(FabricDesign(topology="fat-tree", chips=64), (Failure(chips=(5,)), Failure(domains=(1,))))
    assert gone_of(wiring, SHELF, 64).wiring.failures == ()


def test_one_dead_chip_costs_no_more_than_its_server(capsys: pytest.CaptureFixture[str]) -> None:
    found, fewer = planned(64, failure={"chips": 5}), planned(56)
    assert found.results["num_chips"] == fewer.results["num_chips"] == 56
    assert found.results["step_s"] == pytest.approx(fewer.results["step_s"])
    assert "on 56 of 64 × h100-sxm, 1 out, 7 idle" in found.headline
    assert not any("failure" in note and "nothing" in note for note in found.notes)
    for command in found.next_commands:
        results = followed(command, capsys)
        assert "simulate train" not in command or results["step_s"] == found.results["step_s"]
    assert "8 out: " in planned(64, failure={"domains": 1}).headline


def test_chips_beside_failed_ones_are_idle_for_that_and_not_for_the_batch() -> None:
    """Four servers of eight lose a chip each: 32 chips and seven others are left, and 512 does not divide over 39."""
    lost = {"failure": {"chips": (0, 8, 16, 24)}}
    found = planned(64, global_batch=512, **lost)
    beside = "21 beside failed chips: of domains that have lost some one is used in part"
    does_not = "a global batch of 512 does not divide over the other 39"
    assert f"on 32 of 64 × h100-sxm, 4 out, 28 idle ({beside}; {does_not}):" in found.headline
    assert not any("60" in note for note in found.notes)
    (hint,) = (note for note in found.notes if "over the 39 chips that layouts are placed on" in note)
    batch = int(hint.split("global_batch=")[1])
    there = planned(64, global_batch=batch, **lost)
    assert f"on 39 of 64 × h100-sxm, 4 out, 21 idle ({beside}):" in there.headline
    assert there.results["tokens_per_s"] > found.results["tokens_per_s"]


def test_a_spare_chip_of_the_last_server_stands_in(capsys: pytest.CaptureFixture[str]) -> None:
    """60 chips are eight servers, of whose 64 chips one is gone."""
    found, whole = planned(60, failure={"chips": 5}), planned(60)
    assert found.results["step_s"] == pytest.approx(whole.results["step_s"])
    assert any("failure" in note and "does nothing" in note for note in found.notes)
    for command in found.next_commands:
        results = followed(command, capsys)
        assert "simulate train" not in command or results["step_s"] == found.results["step_s"]


def test_what_is_not_there_and_what_leaves_nobody_is_refused() -> None:
    with pytest.raises(ScenarioError, match="there is no chip 64"):
        planned(64, failure={"chips": 64})
    with pytest.raises(InfeasibleError, match="cuts off 8 of 8"):
        planned(8, failure={"chips": "0-7"})


def test_a_chip_of_a_torus_is_not_left_out() -> None:
    """Its neighbours forward through it."""
    with pytest.raises(InfeasibleError, match="cuts off 1 of 512"):
        planned(512, failure={"chips": 5}, chip="tpu-v5p", on="torus")


def test_what_is_left_out_is_no_failure_that_the_network_feels() -> None:
    """Beside a chip that is gone the network of those that are left does nothing more than it does without one."""
    found = planned(128, failure={"chips": 5}, oversubscription="2:1")
    assert "1 out" in found.headline
    assert "on and oversubscription do nothing here: the step takes as long otherwise" in found.notes
