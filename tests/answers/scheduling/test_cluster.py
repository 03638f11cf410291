"""`simulate cluster` in words: which policy is best and by how much, what it costs, and what cannot be."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.answers.claims import garbled, unfounded
from tests.scheduling.pods import made_pods

import datahall as dh
from datahall.answer import Answer, GanttChart, LineChart
from datahall.errors import DatahallError, InfeasibleError, ScenarioError

SACCT = str(Path(__file__).parents[1] / "files" / "sacct.txt")
JOBS = [
    {"name": "a", "chips": 32, "run": "10h"},
    {"name": "b", "chips": 64, "run": "10h", "submit": "1h"},
    {"name": "c", "chips": 16, "run": "3h", "submit": "2h"},
]


def asked(policy: str = "fifo,backfill", **more: object) -> Answer:
    return dh.simulate_cluster(chips=64, cluster_job=JOBS, policy=policy, **more)  # type: ignore[arg-type]


def test_the_best_policy_leads_with_its_margin() -> None:
    answer = asked()
    assert answer.headline.startswith(
        "backfill is best: 3 jobs on 64 chips wait 3 h on average (under fifo 9 h)"
    )
    assert answer.results["best_policy"] == "backfill"
    assert answer.results["backfill_mean_wait_s"] == pytest.approx(3 * 3600)
    assert answer.results["fifo_mean_wait_s"] == pytest.approx((0 + 9 + 18) * 3600 / 3)
    assert unfounded(answer) == []
    assert garbled(answer.headline + answer.binding + " ".join(answer.notes)) == []


def test_the_figure_is_what_the_chips_did() -> None:
    answer = asked("backfill")
    assert answer.figure is not None
    work = 32 * 10 + 64 * 10 + 16 * 3
    assert answer.figure.value == pytest.approx(work / (64 * 20))
    whole = answer.figure.at("time of all chips").value
    assert whole == pytest.approx(64 * 20 * 3600)


def test_pictures_show_chips_queue_and_nodes() -> None:
    held, queue, nodes = asked().charts
    assert isinstance(held, LineChart)
    assert isinstance(queue, LineChart)
    assert isinstance(nodes, GanttChart)
    assert [series.name for series in held.series] == ["fifo", "backfill"]
    assert {bar.label for bar in nodes.bars} == {"a", "b", "c"}
    area = sum((bar.end - bar.start) * (bar.high - bar.low) * 8 for bar in nodes.bars)
    assert area == pytest.approx((32 * 10 + 64 * 10 + 16 * 3) * 3600)


def test_a_dump_is_asked_by_its_path_and_says_what_it_left_out() -> None:
    answer = dh.simulate_cluster(SACCT, policy="backfill")
    assert answer.results["num_jobs"] == 3
    assert answer.results["num_chips"] == 24, "the most that it held at once"
    assert answer.results["measured_wait_s"] == pytest.approx((10 + 1500 + 6620) / 3)
    left_out = next(table for table in answer.tables if "left out" in table.title)
    assert sum(int(row[1]) for row in left_out.rows) == 3  # type: ignore[arg-type]
    assert any("waited 45.17 min" in note for note in answer.notes)


def test_a_public_trace_is_asked_by_its_path(tmp_path: Path) -> None:
    answer = dh.simulate_cluster(str(made_pods(tmp_path, 700)), policy="backfill", first_jobs=500)
    assert answer.results["num_jobs"] == 500
    assert unfounded(answer) == []


def test_nodes_that_fail_are_counted_and_what_is_lost_is_said() -> None:
    answer = asked(
        "backfill",
        on="fat-tree",
        failure=[{"domains": [0], "start": "5h", "duration": "1h"}],
        checkpoint_every="1h",
    )
    assert answer.results["num_restarts"] == 1
    assert float(answer.results["goodput_fraction"]) < 1  # type: ignore[arg-type]
    assert any("1 failure of nodes" in note for note in answer.notes)
    assert unfounded(answer) == []


def test_luck_is_that_of_the_seed() -> None:
    one, same, other = (
        asked("backfill", mttf="10d", checkpoint_every="1h", seed=seed).results["makespan_s"]
        for seed in (1, 1, 2)
    )
    assert one == same
    assert one != other


def test_what_never_ends_is_a_no() -> None:
    answer = asked("backfill", on="fat-tree", failure=[{"domains": [0], "start": "30min"}])
    assert answer.verdict == "no"
    assert answer.headline.startswith("No: 1 job of 3 on 64 chips never end")
    assert answer.results["num_never_done"] == 1


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"chips": 64}, "there is no job to run"),
        ({"cluster_job": JOBS}, "how many chips"),
        ({"chips": 64, "cluster_job": JOBS, "policy": "fastest"}, 'there is no "fastest"'),
        ({"chips": 60, "cluster_job": JOBS}, "no whole number of nodes"),
        ({"chips": 64, "cluster_job": [{"run": "-1h"}]}, "too small"),
        ({"chips": 64, "cluster_job": [{"submit": "-1h"}]}, "too small"),
        ({"chips": 64, "cluster_job": [{"name": "a"}, {"name": "a"}]}, "two jobs"),
        ({"chips": 64, "cluster_job": JOBS, "queue": SACCT}, "do not go together"),
        ({"chips": 64, "cluster_job": JOBS, "half_life": "1d"}, "does nothing here"),
        ({"chips": 64, "cluster_job": JOBS, "repair": "1h"}, "does nothing here"),
        ({"chips": 64, "cluster_job": JOBS, "mttf": "1s"}, "too small"),
        ({"chips": 64, "cluster_job": [{"chips": 1, "nodes": 2}]}, "1 chips do not lie on 2 nodes"),
        ({"chips": 64, "cluster_job": JOBS, "on": "torus"}, "not modelled"),
        ({"chips": 64, "cluster_job": JOBS, "on": "fat-tree", "failure": [{"domains": [99]}]}, "there is no"),
    ],
)
def test_what_cannot_be_asked_is_refused(given: dict[str, object], says: str) -> None:
    with pytest.raises((ScenarioError, DatahallError), match=says):
        dh.simulate_cluster(**given)  # type: ignore[arg-type]


def test_a_job_larger_than_the_cluster_is_a_no_with_what_it_takes() -> None:
    with pytest.raises(InfeasibleError) as caught:
        dh.simulate_cluster(chips=16, cluster_job=[{"chips": 24, "run": "1h"}])
    assert caught.value.exit_code == 1
    assert "24 chips; the cluster has 16 in 2 nodes of 8" in caught.value.message


def test_nodes_that_fail_faster_than_work_is_saved_are_a_no() -> None:
    answer = dh.simulate_cluster(
        chips=16, cluster_job=[{"run": "10h", "count": 3}], mttf="60s", checkpoint_every="1h"
    )
    assert answer.verdict == "no"
    assert answer.results["num_never_done"] == 3


def test_a_job_larger_than_the_cluster_is_said_with_what_would_hold_it() -> None:
    with pytest.raises(InfeasibleError) as caught:
        dh.simulate_cluster(chips=16, cluster_job=[{"chips": 24, "run": "1h"}])
    assert "chips=24" in str(caught.value)


def test_a_file_says_the_line_of_a_job_that_cannot_be(tmp_path: Path) -> None:
    path = tmp_path / "jobs.toml"
    path.write_text(
        'version = 1\n[fabric]\nchips = 16\n[[cluster_job]]\nchips = 24\nrun = "1h"\n', encoding="utf-8"
    )
    with pytest.raises(InfeasibleError) as caught:
        dh.simulate_cluster(str(path))
    assert f"{path}:5" in str(caught.value)
