"""`simulate cluster` in words: which policy is best and by how much, what it costs, and what cannot be."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.answers.claims import garbled, unfounded
from tests.results import number
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
    assert any(note.startswith("3 rows of the file are left out: a step of a job") for note in answer.notes)


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
    assert answer.headline.startswith("No: under backfill 1 of 3 jobs on 64 chips never ends: too few nodes")
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
        (
            {"chips": 64, "cluster_job": JOBS, "restart": "1h", "policy": "fifo"},
            "restart does nothing here: no node",
        ),
        (
            {"chips": 64, "cluster_job": JOBS, "checkpoint_every": "1h", "policy": "gang"},
            "checkpoint_every does noth",
        ),
        (
            {"chips": 64, "cluster_job": JOBS, "depth": 10, "policy": "fifo"},
            "depth does nothing here: nobody passes",
        ),
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


def test_the_size_that_is_named_holds_every_job() -> None:
    jobs = [{"chips": 16, "run": "1h"}, {"chips": 96, "run": "1h"}, {"chips": 48, "run": "1h"}]
    with pytest.raises(DatahallError) as caught:
        dh.simulate_cluster(chips=8, cluster_job=jobs)
    assert 'of 8; "job 2" asks for 96 chips' in str(caught.value)
    assert "chips=96 for all of them" in str(caught.value)
    assert dh.simulate_cluster(chips=96, cluster_job=jobs).verdict == "yes"


def test_a_failure_and_a_submission_are_by_one_clock() -> None:
    """The node is gone half an hour before the job is there, which needs the seven that are left."""
    late = {"name": "late", "submit": "1h", "chips": 56, "run": "10h"}
    failure = [{"domains": [0], "start": "30min"}]
    for beside in ([], [{"name": "z", "chips": 8, "run": "60s"}]):
        answer = dh.simulate_cluster(
            chips=64, on="fat-tree", policy="fifo", cluster_job=[late, *beside], failure=failure
        )
        rows = next(table for table in answer.tables if table.title.startswith("jobs")).rows
        assert next(row[2:] for row in rows if row[0] == "late") == (3600.0, 3600.0, 11 * 3600.0, 0)
        assert answer.results["num_restarts"] == 0
        assert unfounded(answer) == []
    assert dh.simulate_cluster(
        chips=64, on="fat-tree", policy="fifo", cluster_job=[late], failure=failure
    ).results["makespan_s"] == pytest.approx(10 * 3600)


def test_a_job_that_its_limit_cuts_off_is_not_done_and_its_work_is_lost() -> None:
    cut = {"name": "long", "chips": 8, "run": "2h", "limit": "1h"}
    answer = dh.simulate_cluster(chips=64, cluster_job=[cut])
    assert answer.verdict == "no"
    assert (
        answer.headline
        == "No: under backfill 1 of 1 job on 64 chips is cut off by a limit that is too short."
    )
    assert answer.binding.startswith('Limits bind: "long" has 2 h of work and a limit of 60 min')
    assert (answer.results["num_done"], answer.results["num_cut_off"]) == (0, 1)
    assert answer.results["goodput_fraction"] == 0.0
    assert unfounded(answer) == []
    saved = dh.simulate_cluster(chips=64, cluster_job=[{**cut, "checkpoint_every": "25min"}])
    assert saved.results["goodput_fraction"] == pytest.approx(50 / 60)
    assert dh.simulate_cluster(chips=64, cluster_job=[{**cut, "limit": "2h"}]).verdict == "yes"


def said_idle(answer: Answer) -> set[str]:
    return {note.partition(" does nothing")[0] for note in answer.notes if "nothing here" in note}


def test_what_the_policy_does_not_use_of_a_job_is_said() -> None:
    jobs = [
        {"chips": 48, "run": "2h", "count": 3, "priority": 1, "network": "30%", "checkpoint_every": "10min"},
        {"chips": 8, "run": "1h", "count": 4, "priority": 9, "preemptible": True, "submit": "1min"},
    ]
    fifo = dh.simulate_cluster(chips=64, cluster_job=jobs, policy="fifo")
    assert said_idle(fifo) == {"priority", "preemptible", "network", "checkpoint_every"}
    both = dh.simulate_cluster(chips=64, cluster_job=jobs, policy="fifo,priority")
    assert said_idle(both) == {"network", "checkpoint_every"}, "nobody has to make room"
    assert said_idle(dh.simulate_cluster(chips=64, cluster_job=JOBS, policy="fifo")) == set()
    low = {"chips": 64, "run": "2h", "preemptible": True, "checkpoint_every": "10min"}
    first = {"chips": 64, "run": "1h", "priority": 9, "submit": "1h"}
    stopped = dh.simulate_cluster(chips=64, cluster_job=[low, first], policy="priority", restart="1min")
    assert (stopped.results["num_restarts"], said_idle(stopped)) == (1, set())
    alone = dh.simulate_cluster(chips=64, cluster_job=[low], policy="priority", restart="1min")
    assert said_idle(alone) == {"restart", "checkpoint_every"}, "it could have been stopped, and was not"


def test_a_file_is_held_to_the_same_rules_as_flags(tmp_path: Path) -> None:
    path = tmp_path / "jobs.toml"
    path.write_text(
        'version = 1\n[fabric]\nchips = 64\n[[cluster_job]]\nchips = 8\nrun = "1h"\n',
        encoding="utf-8",
    )
    with pytest.raises(DatahallError, match="half_life does nothing here: no policy counts use"):
        dh.simulate_cluster(str(path), policy="backfill", half_life="1h")
    path.write_text(path.read_text(encoding="utf-8") + "nodes = 9\n", encoding="utf-8")
    with pytest.raises(DatahallError, match="8 chips do not lie on 9 nodes"):
        dh.simulate_cluster(str(path))


def user_waits(answer: Answer) -> dict[object, object]:
    table = next(one for one in answer.tables if one.title.startswith("users"))
    return {row[0]: row[-1] for row in table.rows}


def test_a_user_waits_as_long_as_the_jobs_that_start_do() -> None:
    jobs = [
        {"chips": 64, "run": "10h", "user": "ann"},
        {"chips": 64, "run": "1h", "user": "ann"},
        {"chips": 8, "run": "1h", "user": "bob", "submit": "11h"},
    ]
    assert user_waits(dh.simulate_cluster(chips=64, cluster_job=jobs, policy="fifo")) == {
        "ann": pytest.approx(5 * 3600),
        "bob": 0.0,
    }


def test_a_job_that_never_starts_has_not_waited_for_nothing() -> None:
    """B wants all nodes, of which one is gone for good; its user's other job starts when a node is free."""
    jobs = [
        {"chips": 56, "run": "10h", "user": "ann", "submit": "1h"},
        {"chips": 64, "run": "10h", "user": "bob", "submit": "1h"},
        {"chips": 8, "run": "1h", "user": "bob", "submit": "2h"},
        {"chips": 64, "run": "1h", "user": "eve", "submit": "2h"},
    ]
    answer = dh.simulate_cluster(
        chips=64, on="fat-tree", policy="gang", cluster_job=jobs, failure=[{"domains": [0], "start": "30min"}]
    )
    assert answer.results["num_never_done"] == 2
    assert user_waits(answer) == {"ann": 0.0, "bob": pytest.approx(9 * 3600), "eve": None}
    assert unfounded(answer) == []


def test_the_load_counts_work_up_to_limits() -> None:
    jobs = [
        {"chips": 64, "run": "10h", "limit": "1h"},
        {"chips": 64, "run": "1h", "submit": "1h"},
    ]
    assert dh.simulate_cluster(chips=64, cluster_job=jobs).results["load_fraction"] == pytest.approx(2.0)


def test_nodes_that_fail_faster_than_work_is_saved_are_a_no() -> None:
    """A node that fails every minute, and an hour between two checkpoints: none is ever reached."""
    with pytest.raises(InfeasibleError, match="never ends"):
        dh.simulate_cluster(
            chips=16, cluster_job=[{"run": "10h", "count": 3}], mttf="60s", checkpoint_every="1h"
        )


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


def test_a_domain_of_several_nodes_is_called_one_and_fails_with_any_of_them() -> None:
    """An NVL72 is 18 trays: 144 chips are 2 domains and 36 nodes, as `simulate run` and `simulate train` count them."""
    jobs = [{"chips": 72, "run": "900d", "count": 2, "checkpoint_every": "1d"}]
    rack = dh.simulate_cluster(
        chip="gb200", chips=144, cluster_job=jobs, mttf="300d", repair="1h", restart="0s"
    )
    assert any("2 domains of 72 chips" in note for note in rack.notes)
    assert "a domain is 18 nodes, and is down while any of them is" in rack.notes
    # 900 days of 36 nodes, each of which fails every 300 days: 99.9 % of Poisson(108) lie between 76 and 145
    assert 76 <= number(rack, "num_restarts") <= 145
    servers = dh.simulate_cluster(chips=144, cluster_job=jobs, mttf="300d", repair="1h", restart="0s")
    assert any("18 nodes of 8 chips" in note for note in servers.notes)
    # of Poisson(54) between 32 and 80
    assert 32 <= number(servers, "num_restarts") <= 80
    assert (
        "7 of 36 hosts slow"
        in dh.simulate_train("llama-3.1-70b", chip="gb200", chips=144, tp=4, slow_hosts="20%").notes
    )
    run = dh.simulate_run("llama-3.1-70b", chip="gb200", chips=144, tp=4, days=1, runs=2)
    assert run.results["num_nodes"] == 36


def test_cards_without_scale_up_links_stand_in_nodes_too() -> None:
    answer = dh.simulate_cluster(chip="l40s", chips=64, cluster_job=[{"chips": 6, "run": "1h"}])
    assert any("8 nodes of 8 chips" in note for note in answer.notes)
