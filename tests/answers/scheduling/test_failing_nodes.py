"""Queues on nodes that fail often: what can never end is refused, and what failures cost is said to bind."""

from __future__ import annotations

from math import exp, expm1
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.results import number

import datahall as dh
from datahall.catalog import Catalog
from datahall.cli.main import run
from datahall.errors import DatahallError, InfeasibleError
from datahall.scenario.sections.fabric import FabricDesign
from datahall.scheduling.jobs import jobs_of
from datahall.scheduling.machine import machine_from
from datahall.scheduling.run import Conditions, num_failures
from datahall.units import fmt

CATALOG = Catalog(user=False)
MACHINE = machine_from(FabricDesign(chip="h100-sxm", chips=64), CATALOG, num_chips=64)
HOUR_S = 3600.0
LONG = {"chips": 64, "cluster_job": {"chips": 48, "run": "2h"}}


def asked(**more: Any) -> dh.Answer:
    return dh.simulate_cluster(**{**LONG, **more})


def test_a_job_that_never_gets_as_long_as_it_needs_without_a_failure_is_refused() -> None:
    """Six nodes that fail every ten minutes: 72 failures are expected in two hours, so none takes e^72 attempts."""
    with pytest.raises(InfeasibleError, match=r"never ends: of its 6 nodes one fails every 100 s"):
        asked(mttf="10min")


def test_the_interval_that_is_offered_lets_it_end() -> None:
    with pytest.raises(InfeasibleError) as refused:
        asked(mttf="10min", restart="2s", repair="1min")
    assert "checkpoint_every=10s" in str(refused.value).replace('"', "")
    assert asked(mttf="10min", restart="2s", repair="1min", checkpoint_every="10s").verdict == "yes"


def test_no_interval_is_offered_where_too_few_nodes_are_ever_up() -> None:
    """Ten minutes up and four hours in repair: six of eight are up in less than a millionth of the time."""
    with pytest.raises(InfeasibleError) as refused:
        asked(mttf="10min", restart="2s", checkpoint_every="10s")
    assert "shorter" in refused.value.hint
    assert "checkpoint" not in refused.value.hint


@pytest.mark.parametrize(("chips", "hours"), [(8, 2.0), (48, 0.5), (64, 1.0)])
def test_failures_while_a_job_runs_by_hand(chips: int, hours: float) -> None:
    """A node in ten hours, no restart, repaired at once: (e^(λ s) − 1)/λ on n nodes, while all eight fail."""
    jobs = jobs_of(np.zeros(1), np.array([hours * HOUR_S]), np.array([chips]))
    found = num_failures(jobs, MACHINE, Conditions(mttf_s=10 * HOUR_S, repair_s=1e-9))
    nodes = chips // 8
    takes_hours = expm1(nodes * hours / 10.0) / (nodes / 10.0)
    assert found[0] == pytest.approx(8 * takes_hours / 10.0, rel=1e-6)


def test_a_job_on_all_nodes_waits_until_all_are_up() -> None:
    """Nodes that are up nine tenths of the time: eight of eight are for 0.9^8 of it."""
    jobs = jobs_of(np.zeros(1), np.array([HOUR_S]), np.array([64]))
    always, often = (
        num_failures(jobs, MACHINE, Conditions(mttf_s=90 * HOUR_S, repair_s=hours * HOUR_S))[0]
        for hours in (1e-9, 10.0)
    )
    assert often == pytest.approx(always / 0.9**8, rel=1e-6)


def test_failures_bind_where_they_take_most_of_the_time() -> None:
    """One job and nobody who waits: it is not nothing that makes two hours eighteen days."""
    found = asked(mttf="3h")
    assert found.binding.startswith("Failures bind")
    assert "no job keeps checkpoints" in found.binding
    assert number(found, "failed_fraction") > exp(-0.5)
    assert asked().binding.startswith("Nothing binds")
    saved = asked(mttf="3h", checkpoint_every="5min")
    assert number(saved, "failed_fraction") < number(found, "failed_fraction")


def test_chips_that_do_not_go_on_the_nodes_that_are_said_are_refused() -> None:
    with pytest.raises(DatahallError, match="48 chips do not go on 2 nodes of 8"):
        dh.simulate_cluster(chips=64, cluster_job={"chips": 48, "nodes": 2, "run": "2h"})
    assert dh.simulate_cluster(chips=64, cluster_job={"chips": 48, "nodes": 6, "run": "2h"}).verdict == "yes"


def test_time_of_chips_is_said_as_that() -> None:
    """48 chips for two hours are 96 chip-hours, and no four days."""
    assert fmt(48 * 2 * HOUR_S, "chip_s") == "96 chip-hours"
    assert asked().figure.at("useful work").unit == "chip_s"


@pytest.mark.parametrize("name", ["restart", "checkpoint_every"])
def test_what_is_about_jobs_that_stop_is_refused_where_none_does_and_its_hint_can_be_typed(name: str) -> None:
    with pytest.raises(DatahallError, match="no node fails") as refused:
        asked(**{name: "1h"})
    assert "[" not in refused.value.hint
    asked(**{name: "1h"}, policy="priority")


@pytest.mark.filterwarnings("error")
def test_failures_that_no_float_can_count_are_refused_without_a_warning() -> None:
    """Nodes that fail every minute are hardly ever enough at once: what is expected overflows."""
    with pytest.raises(InfeasibleError, match="never ends"):
        dh.simulate_cluster(chips=512, cluster_job={"chips": 512, "run": "2h"}, mttf="1min", policy="fifo")


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--restart", "1h"], ["--restart does nothing here", "--> --restart"]),
        (["--half-life", "2h"], ["--half-life does nothing here", "--> --half-life"]),
        (["--mttf", "1min"], ["--> --mttf", "a shorter --repair"]),
        (["--on", "torus"], ["--> --on"]),
        (["--domain", "7"], ["jobs.toml:3", "fabric.chips", "another --domain"]),
        (["--on", "fat-tree"], ["--on does nothing here"]),
    ],
)
def test_what_is_said_beside_a_file_is_spelled_as_it_was_said(
    flags: list[str], words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The file has no such line; what it has is spelled as its key."""
    file = tmp_path / "jobs.toml"
    file.write_text('version = 1\n[fabric]\nchips = 64\n[[cluster_job]]\nchips = 48\nrun = "2h"\n')
    run(["simulate", "cluster", str(file), *flags])
    said = " ".join("".join(capsys.readouterr()).split())
    for word in words:
        assert word in said
    assert "scheduler." not in said
