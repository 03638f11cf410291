"""What caches of conversations find, tier below tier: against a simulation of the same, and limits."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest

import datahall as dh
from datahall.catalog import Catalog
from datahall.inference.closed_form.conversations import reuse
from datahall.inference.closed_form.load import load_of
from datahall.inference.engine.engine import engine_on
from datahall.inference.engine.replica import Replica
from datahall.inference.ladder.techniques import Setting
from datahall.inference.ladder.tiers import Stores, Tiered, tiers_of
from datahall.scenario.requests import requests_of
from datahall.scenario.sections.traffic import Traffic
from datahall.scenario.sections.wanted.promise import Promise
from datahall.workload.traffic.lengths import Fixed

SLO = Promise(ttft_s=5.0, tpot_s=0.1)
RATE = 2.0
TALK = requests_of(
    Traffic(rate_per_s=RATE, isl=Fixed(600), osl=Fixed(200), turns=6.0, think_s=120.0), max_context=0
)
TALKED = {"rate": RATE, "isl": 600, "osl": 200, "spread": 0, "turns": 6, "think": 120, "ttft": 5, "tpot": 0.1}
HOST, DRIVES = 32e9, 500e9
BELOW = {"host_cache": HOST, "drive_cache": DRIVES, "drive_rate": 3e9}


def replica(shelf: Catalog, *, drive_bytes_per_s: float = 3e9) -> Replica:
    chip = shelf.chip("h100-sxm")
    return Replica(
        model=shelf.model("llama-3.1-8b"),
        chip=chip,
        engine=engine_on("vllm", chip),
        drive_bytes_per_s=drive_bytes_per_s,
    )


def tiers(shelf: Catalog, stores: Stores, rate: float = RATE, **changes: float) -> tuple[Tiered, ...]:
    one = replica(shelf, **changes)
    return tiers_of(Setting(replica=one, load=load_of(TALK)), SLO, rate, reuse(TALK), stores)


@pytest.fixture(scope="module")
def found(shelf: Catalog) -> tuple[Tiered, ...]:
    return tiers(shelf, Stores(host_bytes=HOST, drive_bytes=DRIVES))


def test_each_tier_finds_more_and_a_chip_then_holds_more(found: tuple[Tiered, ...]) -> None:
    assert [one.name for one in found] == [
        "nothing found", "on the chips", "and in the hosts' memory", "and on drives",
    ]  # fmt: skip
    assert found[0].found_fraction == 0.0
    for less, more in pairwise(found):
        assert more.found_fraction > less.found_fraction
        assert more.held_per_s > less.held_per_s


@pytest.mark.parametrize(("place", "tiers"), [(1, {}), (2, {"host_cache": HOST}), (3, BELOW)])
def test_a_simulation_finds_as_much(found: tuple[Tiered, ...], place: int, tiers: dict[str, float]) -> None:
    """Of conversations that are under way from the first second on, played event by event."""
    run = dh.simulate_serve("llama-3.1-8b", chip="h100-sxm", requests=4000, **TALKED, **tiers)  # type: ignore[arg-type]
    (share,) = (said for note in run.notes for said in re.findall(r"prompt tokens ([0-9.]+) %", note))
    assert found[place].found_fraction == pytest.approx(float(share) / 100.0, abs=0.03)
    assert found[place].ttft_s == pytest.approx(run.results["ttft_mean_s"], rel=0.4)


def test_nothing_below_the_chips_is_nothing_to_lift(found: tuple[Tiered, ...]) -> None:
    assert [one.lifted_s == 0 for one in found] == [True, True, False, False]


def test_drives_that_lift_too_slowly_end_what_is_held(shelf: Catalog) -> None:
    stores = Stores(host_bytes=HOST, drive_bytes=DRIVES)
    fast, slow = (tiers(shelf, stores, drive_bytes_per_s=rate)[-1] for rate in (3e9, 2e8))
    assert slow.held_per_s < fast.held_per_s
    assert slow.ttft_s > fast.ttft_s


def test_tiers_that_are_not_there_are_not_shown(shelf: Catalog) -> None:
    assert len(tiers(shelf, Stores())) == 2
    assert len(tiers(shelf, Stores(drive_bytes=DRIVES), drive_bytes_per_s=0.0)) == 2
