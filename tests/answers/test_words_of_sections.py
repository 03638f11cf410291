"""What the tables of plans say beside each figure: every number of those words is the result or the input it names."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import cache
from math import ceil
from typing import Any

import pytest
from tests.answers.claims import NUMBER
from tests.results import number

import datahall as dh
from datahall.answer import Answer, Table
from datahall.units import fmt

PUE, STORAGE_OF_A_CHIP = 1.15, 125e6  # where nobody says another
SERVER_CHIPS = {"h100-sxm": 8, "h200-sxm": 8, "gb200": 72}
NODE_CHIPS = {"h100-sxm": 8, "h200-sxm": 8, "gb200": 4}


def of_training(seed: int) -> dict[str, Any]:
    draw = random.Random(seed)
    asked: dict[str, Any] = {
        "model": draw.choice(("llama-3.1-8b", "qwen3-30b-a3b")),
        "tokens": draw.choice(("300B", "1T", "15T")),
        "chip": ("h100-sxm", "h200-sxm", "gb200")[seed % 3],
        "chips": (130, 64, 144)[seed % 3],
        "grid": draw.choice(("usa", "sweden", "texas")),
    }
    for name, value in (
        ("failure_rate", "0.02"), ("spares_enough", "95%"), ("pue", 1.3), ("storage", "3GB/s"), ("detect", "9min"),
        ("restart", "25min"),
    ):  # fmt: skip
        if draw.random() < 0.5 and not (name == "restart" and "detect" in asked):
            asked[name] = value
    return asked


def of_serving(seed: int) -> dict[str, Any]:
    draw = random.Random(seed)
    asked: dict[str, Any] = {
        "model": draw.choice(("llama-3.1-8b", "llama-3.1-70b")),
        "chips": [("h100-sxm", "h200-sxm", "gb200")[seed % 3]],
        "rate": draw.choice((30, 150)),
        "isl": 500,
        "osl": 200,
        "grid": draw.choice(("usa", "sweden", "texas")),
    }
    for name, value in (
        ("failure_rate", "0.02"), ("spares_enough", "95%"), ("pue", 1.3), ("restart", "25min"), ("warm_up", "1min")
    ):  # fmt: skip
        if draw.random() < 0.5 and not (name == "warm_up" and "restart" in asked):
            asked[name] = value
    return asked


@cache
def planned(verb: str, seed: int) -> Answer:
    asked = of_training(seed) if verb == "plan train" else of_serving(seed)
    found = dh.plan_train(**asked) if verb == "plan train" else dh.plan_serve(**asked)
    assert isinstance(found, Answer)
    return found


def said_of(answer: Answer, name: str, usual: float) -> float:
    value = answer.inputs.get(name, usual)
    assert isinstance(value, int | float)
    return float(value)


class Facts:
    """What an answer has, as the words of its tables name it."""

    def __init__(self, answer: Answer, chip: str) -> None:
        self.answer, self.chip = answer, chip

    def of(self, name: str) -> float:
        return number(self.answer, name)

    @property
    def chips(self) -> float:
        idle = self.answer.results.get("num_idle_chips", 0)
        assert isinstance(idle, int)
        return self.of("num_chips") + idle

    @property
    def replica_chips(self) -> float:
        return self.of("num_chips") / self.of("num_replicas")

    @property
    def node_chips(self) -> float:
        """Of one node; of fewer chips than it has, all of them."""
        return min(NODE_CHIPS[self.chip], self.chips)

    @property
    def num_lost(self) -> float:
        return min(self.of("num_replicas"), max(1, self.node_chips // self.replica_chips))

    def spares(self) -> list[str]:
        """Whole nodes, also of a service on fewer chips than one has."""
        share = said_of(self.answer, "enough_fraction", 0.99)
        return [f"{NODE_CHIPS[self.chip]}", fmt(share, "fraction")]

    def machines(self) -> list[str]:
        pue = said_of(self.answer, "pue_ratio", PUE)
        servers = ceil(self.chips / SERVER_CHIPS[self.chip])
        spare = servers * SERVER_CHIPS[self.chip] - self.chips
        return [f"{servers:,}", *([f"{spare:g}"] if spare else []), f"{pue:g}"]

    def three(self, name: str, unit: str) -> str:
        return fmt(self.of(name), unit, 3)


IDLE = "power of idle chips"
TRAINING: dict[str, Callable[[Facts], list[str]]] = {
    "effective training time": lambda it: [it.three("mttf_s", "s"), it.three("restart_s", "s")],
    "time of the run": lambda it: [
        f"{num:.2g}" if (num := it.of("num_interruptions")) < 1 else f"{round(num):,}"
    ],
    "spare nodes": Facts.spares,
    "checkpoint": lambda it: [it.three("checkpoint_interval_s", "s")],
    "storage for checkpoints": lambda it: [
        fmt(
            said_of(it.answer, "storage_bytes_per_s", STORAGE_OF_A_CHIP * it.of("num_chips")),
            "bytes_per_s",
            3,
        )
    ],
    "data": lambda it: [it.three("read_bytes_per_s", "bytes_per_s")],
    "power to be provisioned": Facts.machines,
    "power drawn": lambda it: [fmt(it.of("site_w") / it.chips, "w", 3)],
    "peak": lambda _: [],
    "swing": lambda it: [it.three("step_s", "s")],
    IDLE: lambda it: [f"{it.of('num_idle_chips'):g}", it.three("idle_provisioned_w", "w")],
    "energy of the steps": lambda it: [it.three("token_j", "j_per_token"), it.three("run_kg", "kg")],
}
SERVING: dict[str, Callable[[Facts], list[str]]] = {
    "capacity lost to restarts": lambda it: [
        it.three("mttf_s", "s"), f"{it.num_lost:g}", it.three("back_s", "s")
    ],
    "replicas to add": lambda it: it.spares()[1:],
    "spare nodes": Facts.spares,
    "weights": lambda it: [
        it.three("load_s", "s"),
        fmt(it.of("weights_bytes") / it.replica_chips / it.of("load_s"), "bytes_per_s", 3),
    ],
    "power to be provisioned": Facts.machines,
    "power drawn": lambda it: [fmt(it.of("site_w") / it.chips, "w", 3)],
    "peak": lambda _: [],
    "swing": lambda it: [it.three("rest_w", "w")],
    "energy of a day": lambda it: [it.three("token_j", "j_per_token"), it.three("day_kg", "kg")],
}  # fmt: skip


# what is said of supply comes last, words alone; before it what is said of money, the cheapest way first
SUPPLY = "supply: "
MONEY = {
    "a month, rented on demand": "rent_month_usd", "a month, owned by a neocloud": "own_month_usd",
    "a million tokens, all in": "all_in_usd_per_mtok", "cost of the run, rented on demand": "rent_usd",
    "cost of the run, owned by a neocloud": "own_usd", "price of the hardware": "upfront_usd",
}  # fmt: skip


def section_of(answer: Answer) -> Table:
    (table,) = (one for one in answer.tables if [column.name for column in one.columns][-1] == "which is")
    return table


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("verb", "rows"), [("plan train", TRAINING), ("plan serve", SERVING)])
def test_every_number_beside_a_figure_is_the_one_it_names(
    verb: str, rows: dict[str, Callable[[Facts], list[str]]], seed: int
) -> None:
    """In the order in which the words have them; there are no others."""
    asked = of_training(seed) if verb == "plan train" else of_serving(seed)
    chip = asked["chip"] if verb == "plan train" else asked["chips"][0]
    answer = planned(verb, seed)
    facts, table = Facts(answer, chip), section_of(answer)
    idle = answer.results.get("num_idle_chips", 0)
    plain = [row for row in table.rows if row[0] not in MONEY and not str(row[0]).startswith(SUPPLY)]
    assert [row[0] for row in plain] == [name for name in rows if name != IDLE or idle]
    assert plain == list(table.rows[: len(plain)])
    for what, _, which in plain:
        expected, text = rows[str(what)](facts), str(which)
        assert NUMBER.findall(text) == [NUMBER.findall(one)[0] for one in expected], f"{what}: {text}"
        at = 0
        for one in expected:
            assert one in text[at:], f"{what}: {one} of {text}"
            at = text.index(one, at) + len(one)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("verb", ["plan train", "plan serve"])
def test_every_figure_of_the_table_is_the_result_that_it_is(verb: str, seed: int) -> None:
    names = {
        "effective training time": "ettr_fraction", "time of the run": "elapsed_s", "spare nodes": "num_spares",
        "checkpoint": "checkpoint_bytes", "storage for checkpoints": "checkpoint_bytes_per_s", "data": "dataset_bytes",
        "power to be provisioned": "provisioned_w", IDLE: "idle_w", "power drawn": "site_w", "peak": "peak_w",
        "swing": "swing_w",
        "energy of the steps": "run_j", "energy of a day": "day_j", "weights": "weights_bytes",
        "capacity lost to restarts": "lost_fraction", "replicas to add": "num_more_replicas", **MONEY,
    }  # fmt: skip
    answer = planned(verb, seed)
    for what, value, which in section_of(answer).rows:
        if str(which).startswith("not priced") or str(what).startswith(SUPPLY):
            assert value is None
            continue
        assert getattr(value, "value", value) == number(answer, names[str(what)]), what
