"""How far each input of operations goes, and which do not go together: written by hand, held against what is read."""

from __future__ import annotations

import pytest

from datahall.answers.ask import form_of
from datahall.catalog import Catalog
from datahall.errors import ScenarioError
from datahall.scenario.field import CONCEPTS, Field, fields
from datahall.scenario.kinds import Count, Quantity, Raw, Reading, Share
from datahall.scenario.read import read_names

SECTIONS = (
    "site", "failures", "recovery", "run", "checkpoint", "datapath", "cluster_job", "scheduler",
    "key", "gateway", "billing", "endpoint",
)  # fmt: skip

NOT_0 = (("0 s",), ("1 ms",))
ANY_TIME = (("-1 s",), ("0 s", "1 s"))
LONGEST = (("36501 d",), ("36500 d",))  # a hundred years
# values that are refused and taken at the lower end, then at the upper
ENDS: dict[str, tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...], tuple[str, ...]]] = {
    "site.pue": (("0.5", "0.99"), ("1",), ("10.1",), ("10",)),
    "site.storage_share": (("-1 %",), ("0",), ("101 %",), ("100 %",)),
    "site.rack_power": (("0 W",), ("1 W",), ("10.1 MW",), ("10 MW",)),
    "site.coherence": (("-1 %",), ("0",), ("101 %",), ("100 %",)),
    "site.time_constant": (("-1 s",), ("0 s",), ("10.1 s",), ("10 s",)),
    "site.site_limit": (("0 W",), ("1 W",), ("1001 GW",), ("1000 GW",)),
    "site.swing_limit": (("0 W",), ("1 W",), ("1001 GW",), ("1000 GW",)),
    "site.ramp_limit": (("0 W/s",), ("1 W/s",), ("1.1e12 W/s",), ("1e12 W/s",)),
    "site.power_floor": (("-1 %",), ("0",), ("101 %",), ("100 %",)),
    "site.ramp_cap": (("0 W/s",), ("1 W/s",), ("1.1e12 W/s",), ("1e12 W/s",)),
    "site.capacitors": (("-1 J",), ("0 J",), ("1.1 MJ",), ("1 MJ",)),
    "site.supercapacitors": (("-1",), ("0",), ("1000001",), ("1000000",)),
    "site.battery": (("-1",), ("0",), ("1000001",), ("1000000",)),
    "failures.rate": (("0",), ("1e-9",), ("101",), ("100",)),
    "failures.job": (("-1",), ("0",), ("101",), ("100",)),
    "failures.shock": (("-1",), ("0",), ("101",), ("100",)),
    "failures.shock_nodes": (("0",), ("1",), ("1048577",), ("1048576",)),
    "failures.age": (*ANY_TIME, *LONGEST),
    "failures.enough": (("0",), ("1 %",), ("100 %",), ("99.9 %",)),
    "recovery.detect": (*ANY_TIME, *LONGEST),
    "recovery.reschedule": (*ANY_TIME, *LONGEST),
    "recovery.warm_up": (*ANY_TIME, *LONGEST),
    "recovery.restart": (*ANY_TIME, *LONGEST),
    "recovery.spares": (("-1",), ("0",), ("1048577",), ("1048576",)),
    "recovery.planned_every": (*ANY_TIME, *LONGEST),
    "recovery.planned": (*ANY_TIME, *LONGEST),
    "recovery.stall": (*ANY_TIME, *LONGEST),
    "recovery.sdc_every": (("0",), ("1",), (), ("1000000",)),
    "recovery.preempted_every": (*NOT_0, *LONGEST),
    "recovery.capacity_back": (*ANY_TIME, *LONGEST),
    "recovery.notice": (*ANY_TIME, *LONGEST),
    "run.days": (("0",), ("0.1",), ("3651",), ("3650",)),
    "run.ettr": (("0",), ("1 %",), ("101 %",), ("100 %",)),
    "run.runs": (("0",), ("1",), ("1000001",), ("1000000",)),
    "checkpoint.storage": (("999 B/s",), ("1 kB/s",), ("1.1e15 B/s",), ("1 PB/s",)),
    "checkpoint.interval": (*NOT_0, *LONGEST),
    "checkpoint.blocking": (*ANY_TIME, *LONGEST),
    "checkpoint.save": (*ANY_TIME, *LONGEST),
    "checkpoint.copy": (*ANY_TIME, *LONGEST),
    "datapath.units": (("0",), ("1",), ("1000001",), ("1000000",)),
    "datapath.utilisation": (("0",), ("1 %",), ("101 %",), ("100 %",)),
    "datapath.chips_per_host": (("0",), ("1",), ("1025",), ("1024",)),
    "datapath.batch": (("0",), ("1",), ("1073741825",), ("1073741824",)),
    "datapath.step": (*NOT_0, *LONGEST),
    "datapath.mfu": (("0",), ("1 %",), ("101 %",), ("100 %",)),
    "datapath.sample": (("0.9 B",), ("1 B",), ("1.1e18 B",), ("1e18 B",)),
    "datapath.dataset": (("0.9 B",), ("1 B",), ("1.1e18 B",), ("1e18 B",)),
    "datapath.columns": (("0",), ("1 %",), ("101 %",), ("100 %",)),
    "datapath.readers": (("0",), ("1",), ("4097",), ("4096",)),
    "datapath.prefetch_depth": (("-1",), ("0",), ("4097",), ("4096",)),
    "datapath.prepare": (("-1 s",), ("0 s",), ("3601 s",), ("1 h",)),
    "datapath.cores": (("0",), ("1",), ("4097",), ("4096",)),
    "datapath.cache": (("-1 B",), ("0 B",), ("1.1e18 B",), ("1e18 B",)),
    "datapath.host_memory": (("0 B",), ("1 B",), ("1.1e18 B",), ("1e18 B",)),
    "datapath.host_nic": (("999 B/s",), ("1 kB/s",), ("1.1e15 B/s",), ("1 PB/s",)),
    "datapath.away": (("-1 s",), ("0 s",), ("61 s",), ("60 s",)),
    "datapath.checkpoint": (("-1 B",), ("0 B",), ("1.1e18 B",), ("1e18 B",)),
    "datapath.checkpoint_every": (*NOT_0, *LONGEST),
    "datapath.replicas": (("0",), ("1",), ("1000001",), ("1000000",)),
    "cluster_job.chips": (("0",), ("1",), ("1048577",), ("1048576",)),
    "cluster_job.nodes": (("0",), ("1",), ("1048577",), ("1048576",)),
    "cluster_job.run": (*NOT_0, *LONGEST),
    "cluster_job.limit": (*NOT_0, *LONGEST),
    "cluster_job.submit": (*ANY_TIME, *LONGEST),
    "cluster_job.priority": (("-1",), ("0",), ("1000000001",), ("1000000000",)),
    "cluster_job.checkpoint_every": (*NOT_0, *LONGEST),
    "cluster_job.network": (("-1 %",), ("0",), ("101 %",), ("100 %",)),
    "cluster_job.count": (("0",), ("1",), ("10000001",), ("10000000",)),
    "cluster_job.every": (*ANY_TIME, *LONGEST),
    "scheduler.first_jobs": (("0",), ("1",), ("10000001",), ("10000000",)),
    "scheduler.depth": (("0",), ("1",), ("10000001",), ("10000000",)),
    "scheduler.half_life": (*NOT_0, *LONGEST),
    "scheduler.checkpoint_every": (*NOT_0, *LONGEST),
    "scheduler.restart": (*ANY_TIME, *LONGEST),
    "scheduler.mttf": (("59 s",), ("60 s",), *LONGEST),
    "scheduler.repair": (*NOT_0, *LONGEST),
    "endpoint.window": (*NOT_0, ("1.1h",), ("1h",)),
    "key.expires": (*NOT_0, *LONGEST),
    "key.rpm": (("-1",), ("0",), ("1000000001",), ("1000000000",)),
    "key.tpm": (("-1",), ("0",), ("1000000000001",), ("1000000000000",)),
    "key.parallel": (("-1",), ("0",), ("1000001",), ("1000000",)),
}

RUN: dict[str, Raw] = {"model": "llama-3.1-8b", "chips": 8, "days": 1}
# verb, what else is said, and two that do not go together
PAIRS: list[tuple[str, dict[str, Raw], tuple[str, str], tuple[str, str]]] = [
    ("simulate run", RUN, ("save", "1s"), ("blocking", "1s")),
    ("simulate run", RUN, ("copy", "1s"), ("blocking", "1s")),
    ("show checkpoint", {"model": "llama-3.1-8b", "chips": 8}, ("save", "1s"), ("blocking", "1s")),
    ("simulate run", RUN, ("detect", "1min"), ("restart", "10min")),
    ("simulate run", RUN, ("reschedule", "1min"), ("restart", "10min")),
    ("simulate run", RUN, ("warm_up", "1min"), ("restart", "10min")),
    ("show datapath", {"workload": "resnet50", "chips": 8}, ("mfu", "40%"), ("step", "1s")),
]
FLAGS = [
    ("simulate run", RUN, ("synchronous", True), ("blocking", "1s")),
    ("simulate run", RUN, ("hot_spares", True), ("restart", "10min")),
]


@pytest.fixture(scope="module")
def at() -> Reading:
    return Reading(catalog=Catalog(user=False))


def numbers() -> dict[str, Field]:
    return {
        field.path: field
        for section in SECTIONS
        for field in fields(section)
        if isinstance(field.kind, Count | Quantity | Share)
    }


def test_every_number_of_operations_has_its_ends_here() -> None:
    assert set(SECTIONS) == {name for name, one in CONCEPTS.items() if one.home.startswith("operations.")}
    assert set(ENDS) == set(numbers())


@pytest.mark.parametrize("path", ENDS)
def test_a_number_goes_as_far_as_it_makes_sense(path: str, at: Reading) -> None:
    kind, (low, least, high, most) = numbers()[path].kind, ENDS[path]
    for value in (*least, *most):
        kind.read(value, at)
    for value in (*low, *high):
        with pytest.raises(ScenarioError, match=r"it must be|out of bounds"):
            kind.read(value, at)


@pytest.mark.parametrize(("verb", "also", "one", "other"), [*PAIRS, *FLAGS])
def test_two_of_which_one_would_win_are_refused_together(
    verb: str, also: dict[str, Raw], one: tuple[str, Raw], other: tuple[str, Raw]
) -> None:
    catalog = Catalog(user=False)
    for name, value in (one, other):
        read_names(form_of(verb), {**also, name: value}, catalog)
    with pytest.raises(ScenarioError, match="do not go together"):
        read_names(form_of(verb), {**also, **dict((one, other))}, catalog)


def test_no_other_pair_of_operations_is_refused() -> None:
    """What a declaration says beside these stands in the table above."""
    said = {(one, other) for _, _, (one, _), (other, _) in (*PAIRS, *FLAGS)}
    declared = {
        (field.name, other)
        for section in SECTIONS
        for field in fields(section)
        for other in field.kind.against
    }
    assert declared == said
