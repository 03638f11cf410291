"""A sweep that is killed, interrupted or out of room goes on where it was, and ends with the same bytes."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import datahall as dh
from datahall.cli.main import run

FILE = 'version = 1\nask = "show hierarchy"\n[deployment]\nchip = "h100-sxm"\n'
NUM = 2000
HOME = Path(dh.__file__).parents[1]


@pytest.fixture
def question(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(HOME))
    path = tmp_path / "question.toml"
    path.write_text(FILE)
    return path


def words(output: str, num: int = NUM) -> list[str]:
    return ["sweep", "question.toml", "--over", f"working_set=1GB..{num}GB:1GB", "-o", output]


# What runs tests in the background leaves SIGINT ignored, which children would inherit: they begin as in a terminal.
IN_A_TERMINAL = (
    "import runpy, signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
    "runpy.run_module('datahall', run_name='__main__', alter_sys=True)"
)


def started(line: list[str], **how: object) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-c", IN_A_TERMINAL, *line]
    return subprocess.Popen(command, stderr=subprocess.PIPE, start_new_session=True, **how)  # type: ignore[call-overload, no-any-return]


def until(process: subprocess.Popen[bytes], journal: Path, lines: int) -> None:
    """Wait until so many points are kept."""
    while not journal.exists() or journal.read_bytes().count(b"\n") <= lines:
        try:
            process.wait(0.02)
        except subprocess.TimeoutExpired:
            continue
        raise AssertionError(process.stderr.read().decode() if process.stderr else "")


def test_a_sweep_that_is_killed_goes_on_and_yields_the_same_bytes(question: Path) -> None:
    del question
    assert run([*words("whole.csv"), "--workers", "1"]) in (0, 1)
    whole = Path("whole.csv").read_bytes()
    assert whole.count(b"\n") == NUM + 1
    assert not Path("whole.csv.points").exists()

    journal = Path("part.csv.points")
    process = started([*words("part.csv"), "--workers", "2"])
    until(process, journal, 200)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    assert not Path("part.csv").exists()
    kept = journal.read_bytes()
    assert 200 < kept.count(b"\n") <= NUM
    journal.write_bytes(kept[:-7])  # as a machine that stops would tear it
    again = started([*words("part.csv"), "--workers", "2"])
    _, said = again.communicate()
    assert again.returncode in (0, 1)
    assert b"of 2,000 points are in part.csv.points" in said
    assert Path("part.csv").read_bytes() == whole
    assert not journal.exists()


def test_a_sweep_that_is_interrupted_says_how_it_goes_on(question: Path) -> None:
    del question
    process = started(words("part.json"))
    until(process, Path("part.json.points"), 20)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate()
    assert process.returncode == 130
    assert b"points are kept in part.json.points: ask again to go on" in said
    assert run([*words("part.json"), "--quiet"]) in (0, 1)
    assert run([*words("whole.json"), "--quiet"]) in (0, 1)
    assert Path("part.json").read_bytes() == Path("whole.json").read_bytes()


def test_a_sweep_that_has_no_more_room_loses_nothing(question: Path) -> None:
    """The journal may grow to 20 kB: what is whole is kept, and with more room it goes on."""
    del question

    def little() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))

    process = started([*words("part.csv", 300), "--workers", "1"], preexec_fn=little)
    _, said = process.communicate()
    assert process.returncode == 2
    assert b"error[output]: part.csv.points could not be written" in said
    assert b"points are kept there" in said
    assert run([*words("part.csv", 300), "--quiet"]) in (0, 1)
    assert run([*words("whole.csv", 300), "--quiet"]) in (0, 1)
    assert Path("part.csv").read_bytes() == Path("whole.csv").read_bytes()


def test_where_nothing_can_be_written_nothing_is_asked(
    question: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    del question
    for place in ("/proc/part.csv", "nowhere/part.csv"):
        assert run(words(place)) == 2
        assert "error[output]" in capsys.readouterr().err


def test_points_of_another_question_are_not_taken(question: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Not of other values, nor of a file that has been changed since."""
    line = ["sweep", "question.toml", "--over", "working_set=1GB,2GB", "--journal", "kept.points", "--quiet"]
    assert run(line) in (0, 1)
    assert run(line) in (0, 1), "its own are"
    question.write_text(FILE.replace("h100-sxm", "h200-sxm"))
    capsys.readouterr()
    assert run(line) == 2
    assert "points of another sweep" in capsys.readouterr().err
    question.write_text(FILE)
    assert run([*line[:3], "working_set=1GB,3GB", *line[4:]]) == 2
    assert run(line) in (0, 1)


def test_an_answer_that_could_not_be_written_keeps_its_points(
    question: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    del question

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr("datahall.report.output._replace", full)
        assert run(words("part.csv", 20)) == 2
    assert Path("part.csv.points").read_bytes().count(b"\n") == 21
    assert run([*words("part.csv", 20), "--quiet"]) in (0, 1)
    assert not Path("part.csv.points").exists()
