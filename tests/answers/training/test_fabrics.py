"""`plan train --on tree,torus`: each fabric is planned as if it had been asked alone, and they stand side by side."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
from tests.cli.conftest import Run, _home, datahall
from tests.results import number

import datahall as dh
from datahall.answer import Answer, Quantity, Table
from datahall.catalog import Catalog
from datahall.errors import DatahallError

__all__ = ["_home", "datahall"]

SHELF = Catalog(user=False)
SAID = {"tokens": "1T", "chips": 128, "chip": "h100-sxm", "catalog": SHELF}
THREE = ("tree", "fat-tree", "rail-optimised")


def plan(on: object, **more: object) -> Answer:
    return dh.plan_train("llama-3.1-8b", on=on, **{**SAID, **more})  # type: ignore[arg-type]


def side_by_side(answer: Answer) -> Table:
    (found,) = [one for one in answer.tables if one.title == "the run on each fabric"]
    return found


@pytest.fixture(name="beside", scope="module")
def _beside() -> Answer:
    return plan("tree,fat-tree,rail")


@pytest.fixture(name="alone", scope="module")
def _alone() -> dict[str, Answer]:
    return {name: plan(name) for name in THREE}


def test_each_fabric_is_planned_as_if_it_were_asked_alone(beside: Answer, alone: dict[str, Answer]) -> None:
    rows = {row[0]: row for row in side_by_side(beside).rows}
    assert set(rows) == set(THREE)
    for name, answer in alone.items():
        assert rows[name][3] == number(answer, "step_s")
        assert rows[name][4] == number(answer, "elapsed_s")
        assert rows[name][1] == f"{answer.results['num_chips']} × h100-sxm"


def test_the_answer_is_that_of_the_best(beside: Answer, alone: dict[str, Answer]) -> None:
    best = min(THREE, key=lambda name: number(alone[name], "elapsed_s"))
    elapsed = [number(alone[name], "elapsed_s") for name in THREE]
    assert number(beside, "elapsed_s") == min(elapsed)
    chosen = alone[str(beside.results["fabric"])]
    assert number(chosen, "elapsed_s") == number(alone[best], "elapsed_s")
    assert chosen.headline in beside.headline
    assert {name: beside.results[name] for name in chosen.results} == chosen.results
    assert side_by_side(beside).marked == 0


def test_power_and_price_are_those_of_show_fabric(beside: Answer) -> None:
    for name, *_, power_w, price_usd in side_by_side(beside).rows:
        network = dh.show_fabric(str(name), chips=128, chip="h100-sxm", catalog=SHELF)
        price = network.results["price_usd"]
        assert isinstance(price, Quantity)
        assert (power_w, price_usd) == (number(network, "power_w"), price.value)


def test_one_fabric_answers_as_it_did(alone: dict[str, Answer]) -> None:
    assert not [one for one in alone["tree"].tables if "each fabric" in one.title]
    assert "fabric" not in alone["tree"].results
    assert plan("tree,tree").results == alone["tree"].results


def test_a_list_says_the_same_as_words_with_commas(beside: Answer) -> None:
    assert plan(["tree", "fat tree", "rail"]).results == beside.results


def test_what_one_of_them_has_no_use_for_is_left_out() -> None:
    """A torus has no ratio; a tree that has one is slower than, or as fast as, one without."""
    narrow, wide = (
        side_by_side(plan("fat-tree,torus", **more)).rows for more in ({"oversubscription": "8:1"}, {})
    )
    steps = [{row[0]: row[3] for row in rows} for rows in (narrow, wide)]
    assert steps[0]["torus"] == steps[1]["torus"]
    assert steps[0]["fat-tree"] >= steps[1]["fat-tree"]  # type: ignore[operator]


def test_fabrics_that_bring_their_own_chips_are_said_to() -> None:
    answer = plan("tree,torus", chip=None, chips=64)
    assert {str(row[1]).split()[-1] for row in side_by_side(answer).rows} == {"h100-sxm", "tpu-v7x"}
    assert any("not the network alone" in note for note in answer.notes)
    assert not any("not the network alone" in note for note in plan("tree,torus", chips=64).notes)


def test_for_a_deadline_the_fewest_chips_come_first() -> None:
    answer = plan("tree,fat-tree", chips=None, deadline="30d")
    chips = [int(str(row[1]).split()[0].replace(",", "")) for row in side_by_side(answer).rows]
    assert chips == sorted(chips)
    assert number(answer, "num_chips") == chips[0]


def test_its_commands_name_one_fabric(beside: Answer, datahall: Run) -> None:
    for command in beside.next_commands:
        words = shlex.split(command)
        if "--on" in words:
            assert "," not in words[words.index("--on") + 1]
    last = shlex.split(beside.next_commands[-1])[1:]
    assert last[:2] == ["plan", "train"]
    assert datahall(*last).code == 0


def test_a_file_asks_the_same(tmp_path: Path, beside: Answer, datahall: Run) -> None:
    path = tmp_path / "plan.toml"
    path.write_text(
        'version = 1\nask = "plan train"\nmodel = "llama-3.1-8b"\n[training]\ntokens = "1T"\n'
        '[fabric]\nchips = 128\nchip = "h100-sxm"\ntopology = "tree,fat-tree,rail"\n'
    )
    assert datahall("check", str(path)).code == 0
    outcome = datahall("plan", str(path))
    assert outcome.code == 0, outcome.err
    assert beside.headline.split(":")[0] in outcome.out.replace("\n", " ")


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"on": "tree,treee"}, "not a topology"),
        ({"on": ","}, "topology"),
        ({"on": "tree,"}, "comma too many"),
        ({"on": "torus,mesh", "oversubscription": "2:1"}, "oversubscription"),
        ({"on": "tree,fat-tree", "chips": None}, "how many chips"),
        ({"on": "tree,meta-24k-roce", "chips": 100_000}, "chips"),
    ],
)
def test_what_cannot_be_is_refused(more: dict[str, object], message: str) -> None:
    with pytest.raises(DatahallError, match=message):
        plan(**{"on": "tree", **more})
