"""Dumps and traces as they are found: steps, line breaks, broken bytes, cut lines, jobs that still run."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.scheduling.pods import TRACE, made_pods, needs_trace

from datahall.errors import DocumentError
from datahall.scheduling.files.read import read_queue
from datahall.scheduling.files.times import points_s, span_s

DATA = Path(__file__).parent / "data"
HEAD = "JobID|State|Submit|Start|End|NNodes|AllocTRES|Timelimit|User|Account|Priority"


def dump(tmp_path: Path, *rows: str, head: str = HEAD) -> str:
    path = tmp_path / "sacct.txt"
    path.write_text("\n".join((head, *rows)), encoding="utf-8")
    return str(path)


def row(job: str = "1", state: str = "COMPLETED", submit: str = "08:00:00", start: str = "08:10:00",
        end: str = "09:10:00", gpus: str = "gres/gpu=8", limit: str = "02:00:00") -> str:  # fmt: skip
    times = "|".join(time if time == "Unknown" else f"2026-03-02T{time}" for time in (submit, start, end))
    return f"{job}|{state}|{times}|1|cpu=8,{gpus},node=1|{limit}|ada|lab|5"


def test_a_real_dump_with_broken_bytes_holds_what_its_jobs_held() -> None:
    """Rows of steps would make 811 GPU-hours of 2.2."""
    file = read_queue(str(DATA / "gcm_sacct-output-invalid-utf8.txt"))
    hours = float((file.jobs.chips * file.jobs.run_s).sum()) / 3600
    assert file.jobs.num == 2
    assert hours == pytest.approx(2.223, abs=5e-4)
    assert [(one.reason.split(",")[0], one.rows) for one in file.left_out] == [("a step of a job", 9)]


def test_rows_of_several_lines_are_one_and_runs_that_stand_there_again_count_once() -> None:
    file = read_queue(str(DATA / "gcm_sacct-multiple-multiline.txt"))
    assert file.jobs.names == ("201729", "201844")
    assert file.jobs.chips.tolist() == [1024, 256]
    assert file.jobs.nodes.tolist() == [128, 32]
    assert file.jobs.limit_s.tolist() == [7 * 86400, 3 * 86400]
    assert (file.jobs.start_s - file.jobs.submit_s).tolist() == [16356, 1]


def test_a_line_that_belongs_to_nothing_is_said_with_its_number() -> None:
    with pytest.raises(DocumentError) as caught:
        read_queue(str(DATA / "gcm_sacct-output-with-invalid-lines.txt"))
    (problem,) = caught.value.problems
    assert problem.where.endswith("invalid-lines.txt:2")
    assert "not as many values as columns" in problem.message


def test_every_row_of_a_dump_is_a_job_or_has_a_reason(tmp_path: Path) -> None:
    path = dump(
        tmp_path,
        row("1"),
        row("1.batch"),
        row("2", "PENDING", start="Unknown", end="Unknown"),
        row("3", gpus="mem=1G"),
        row("4", end="08:00:00"),
        row("5", end="08:10:00"),
        row("6", submit="08:20:00"),
        row("1"),
        row("7", "COMPLETED", end="Unknown"),
        "8|COMPLETED|cut",
        row("1.0"),
    )
    file = read_queue(path)
    assert file.jobs.names == ("1",)
    assert {one.reason: (one.rows, one.where.rpartition(":")[2]) for one in file.left_out} == {
        "not as many values as columns": (1, "11"),
        "a step of a job, whose row says it already": (2, "3"),
        "never started": (1, "4"),
        "holds no GPU": (1, "5"),
        "the same run of the same job again": (1, "9"),
        "has no end": (1, "10"),
        "ends before it starts": (1, "6"),
        "ran for no time": (1, "7"),
        "starts before it is submitted": (1, "8"),
    }


def test_a_dump_that_ends_within_a_row_is_refused_wherever_it_is_cut(tmp_path: Path) -> None:
    whole = "\n".join((HEAD, row("1"), row("2")))
    first, last = len(whole) - len(row("2")), whole.rindex("|")
    path = tmp_path / "cut.txt"
    for end in range(first + 1, last):
        path.write_text(whole[:end], encoding="utf-8")
        with pytest.raises(DocumentError, match=r"cut.txt:3: not as many values.*cut off"):
            read_queue(str(path))
    path.write_text(whole, encoding="utf-8")
    assert read_queue(str(path)).jobs.num == 2


def test_a_trace_that_ends_within_a_row_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "cut.csv"
    path.write_text("submit_s,run_s,chips\n0,5,8\n\n1,5\n\n", encoding="utf-8")
    with pytest.raises(DocumentError, match=r"cut.csv:4: not as many values.*cut off"):
        read_queue(str(path))
    path.write_text("submit_s,run_s,chips\n0,5,8\n1,5\n2,5,8\n", encoding="utf-8")
    assert [(one.rows, one.where) for one in read_queue(str(path)).left_out] == [(1, f"{path}:3")]


def test_a_job_that_still_runs_ends_with_the_last_time_of_the_file(tmp_path: Path) -> None:
    file = read_queue(dump(tmp_path, row("1", "RUNNING", end="Unknown"), row("2", end="10:10:00")))
    assert file.jobs.run_s.tolist() == [7200, 7200]
    assert "1 job still runs" in file.notes[0]


def test_a_requeued_job_waits_since_its_last_run_ended(tmp_path: Path) -> None:
    path = dump(tmp_path, row("1", "REQUEUED"), row("1", "COMPLETED", start="09:30:00", end="10:00:00"))
    file = read_queue(path)
    assert (file.jobs.start_s - file.jobs.submit_s).tolist() == [600, 1200]


@pytest.mark.parametrize(
    ("gpus", "count"),
    [
        ("gres/gpu=16", 16),
        ("gres/gpu:h100=4,gres/gpu:a100=2", 6),
        ("gres/gpu=8,gres/gpu:h100=8", 8),
        ("1001=2", 2),
    ],
)
def test_gpus_however_they_are_written(tmp_path: Path, gpus: str, count: int) -> None:
    assert read_queue(dump(tmp_path, row(gpus=gpus))).jobs.chips.tolist() == [count]


def test_gpus_of_each_node_and_limits_in_minutes_as_older_dumps_have_them(tmp_path: Path) -> None:
    """Four nodes of eight each; 120 minutes."""
    head = "JobID|State|Submit|Start|End|NNodes|AllocGRES|TimelimitRaw"
    times = "|".join(f"2026-03-02T{time}" for time in ("08:00:00", "08:10:00", "09:10:00"))
    jobs = read_queue(dump(tmp_path, f"1|COMPLETED|{times}|4|gpu:8|120", head=head)).jobs
    assert (jobs.chips.tolist(), jobs.nodes.tolist(), jobs.limit_s.tolist()) == ([32], [4], [7200])


def test_a_job_that_was_stopped_seconds_after_its_limit_ran_to_its_end(tmp_path: Path) -> None:
    """Slurm says two hours and lets it run for 30 s more: played again it is not cut off for them."""
    jobs = read_queue(dump(tmp_path, row(end="10:10:30"))).jobs
    assert (jobs.run_s.tolist(), jobs.limit_s.tolist()) == ([7230], [7230])
    assert not jobs.is_cut_off.any()


def test_another_delimiter_and_one_at_the_end(tmp_path: Path) -> None:
    text = "\n".join((HEAD, row())).replace("|", "|#").replace("\n", "|#\n") + "|#"
    path = tmp_path / "dump"
    path.write_text(text, encoding="utf-8")
    assert read_queue(str(path)).jobs.num == 1


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "the file is empty"),
        (b"\x00\x01\x02", "is no text"),
        (b"hello", "neither sacct nor CSV"),
        (b"1|COMPLETED|2", "rows without the names of their columns"),
        (b"JobID|State|Start\n", "no column AllocTRES"),
        (f"{HEAD}\n".encode(), "columns but no rows"),
        (b"a,b,c\n1,2,3\n", "columns a, b, c are of no known trace"),
        (b'submit_s,run_s,chips\n1,2,"3', "not CSV"),
        (b"submit_s,run_s,chips\n0,-5,8\n", "ends before it starts"),
        (b"submit_s,run_s,chips\n0,nan,8\n", "does not say how long it ran"),
    ],
)
def test_what_is_no_queue_is_said_where_it_stands(tmp_path: Path, content: bytes, says: str) -> None:
    path = tmp_path / "queue.csv"
    path.write_bytes(content)
    with pytest.raises(DocumentError) as caught:
        read_queue(str(path))
    assert any(says in problem.message and str(path) in problem.where for problem in caught.value.problems)


def test_a_packed_trace_that_is_cut_off_is_said_to_be(tmp_path: Path) -> None:
    path = tmp_path / "pods.csv.gz"
    path.write_bytes(made_pods(tmp_path).read_bytes()[:5000])
    with pytest.raises(DocumentError, match="1 problem"):
        read_queue(str(path))


def test_pods_that_hold_no_chip_or_never_start_are_left_out(tmp_path: Path) -> None:
    file = read_queue(str(made_pods(tmp_path)))
    reasons = {one.reason: one.rows for one in file.left_out}
    assert reasons.keys() == {"holds no chip", "never started"}
    assert file.jobs.num + sum(reasons.values()) == 600
    assert 20 < (file.jobs.start_s - file.jobs.submit_s).mean() < 40
    assert file.jobs.preemptible.any()


@needs_trace
def test_the_pods_of_a_public_cluster() -> None:
    file = read_queue(str(TRACE))
    assert file.jobs.num + sum(one.rows for one in file.left_out) == 8152
    assert file.jobs.num == 6203
    assert (file.jobs.start_s - file.jobs.submit_s).mean() == pytest.approx(69.95, abs=0.01)
    assert (file.jobs.submit_s >= 0).all()
    assert file.jobs.preemptible.any()


@pytest.mark.parametrize(
    ("head", "line", "expected"),
    [
        (
            "job_id,user,node_num,gpu_num,cpu_num,type,state,submit_time,start_time,end_time,duration,queue,gpu_time",
            "1,u1,2,16,128,Other,FAILED,2023-03-01 00:18:22+08:00,2023-03-01 00:18:54+08:00,2023-03-01 00:20:51+08:00,"
            "117,32,936.0",
            (16, 117.0, 32.0, 2),
        ),
        (
            "job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,queue",
            "7,u,vc,8,16,1,COMPLETED,2020-08-10 00:00:00,2020-08-10 00:00:05,2020-08-10 01:00:05,3600,5",
            (8, 3600.0, 5.0, 1),
        ),
        (
            "job_id,user,num_gpu,num_inst,submit_time,duration,wait_time",
            "1,u,2,3,100,50,7",
            (6, 50.0, 7.0, 0),
        ),
        ("submit_s,run_s,chips,start_s,nodes,user", "5,60,8,9,1,ada", (8, 60.0, 4.0, 1)),
    ],
)
def test_traces_as_their_publishers_write_them(
    tmp_path: Path, head: str, line: str, expected: tuple[int, float, float, int]
) -> None:
    path = tmp_path / "trace.csv"
    path.write_text(f"{head}\n{line}\n", encoding="utf-8")
    jobs = read_queue(str(path)).jobs
    found = (
        int(jobs.chips[0]),
        float(jobs.run_s[0]),
        float(jobs.start_s[0] - jobs.submit_s[0]),
        int(jobs.nodes[0]),
    )
    assert found == expected


def test_times_and_spans() -> None:
    assert points_s(["2026-01-01T00:00:00", "2026-01-01 00:00:01.5Z"])[0] == 1767225600.0
    assert np.isnan(points_s(["Unknown", "2026-01-01T00:00:00"])[0])
    assert (span_s("10"), span_s("3-00"), span_s("01:02:03")) == (10.0, 3 * 86400.0, 3723.0)
