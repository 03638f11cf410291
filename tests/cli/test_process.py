"""The command as a process: pipes, full disks, colour and the time it takes to start."""

import os
import resource
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

HELP_BUDGET_S = 0.100
IMPORT_BUDGET_S = 0.060
ESC = "\x1b"
# questions that cannot be asked: a name, a bound, an option, a pair, a file, what the model does not divide by
WRONG = (
    "show chip h10",
    "plan serve llama-9 --rate 1",
    "plan serve llama-3.1-70b --rate -1",
    "plan serve llama-3.1-70b --rte 1",
    "show hierarchy h200 --prefetch",
    "simulate serve llama-3.1-70b --tp 3 --rate 1",
    "simulate serve qwen3-30b-a3b --tp 2 --ep 3 --rate 1",
    "simulate train llama-3.1-8b --chips 12 --tp 3",
    "show memory llama-3.1-8b --chips 12 --tp 3",
    "plan train llama-3.1-70b --tokens 15T --chips 2048 --chip h2000",
    "plan train llama-3.1-70b --tokens 15T --chips -3 --chip h200",
    "show collective all-reduse --size 1GB",
    "plan nosuch.toml",
    "explain show fit llama-3.1-70bb",
    "validate kernelz",
)


def command(*words: str) -> list[str]:
    return [sys.executable, "-m", "datahall", *words]


def environment(**more: str) -> Mapping[str, str]:
    kept = {name: value for name, value in os.environ.items() if name not in {"NO_COLOR", "TERM", "COLUMNS"}}
    return {**kept, **more}


def on_terminal(words: list[str], env: Mapping[str, str]) -> str:
    """Run a command whose standard output is a terminal."""
    import pty

    leader, follower = pty.openpty()
    process = subprocess.Popen(words, stdout=follower, stderr=subprocess.PIPE, env=env)
    os.close(follower)
    seen = b""
    while True:
        try:
            part = os.read(leader, 65536)
        except OSError:
            break
        if not part:
            break
        seen += part
    os.close(leader)
    process.communicate()
    return seen.decode()


def cpu_s(words: list[str]) -> float:
    """User and system time of one run, the best of five after one that compiles bytecode."""
    subprocess.run(words, check=True, capture_output=True)
    spent = []
    for _ in range(5):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(words, check=True, capture_output=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        spent.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return min(spent)


def test_help_starts_within_its_budget() -> None:
    assert cpu_s(command("--help")) < HELP_BUDGET_S


def test_import_stays_within_its_budget() -> None:
    assert cpu_s([sys.executable, "-c", "import datahall"]) < IMPORT_BUDGET_S


@pytest.mark.parametrize(
    ("words", "heavy"),
    [
        (("--help",), ("numpy", "rich", "msgspec", "numba", "tomllib")),
        (("explain", "--help"), ("numpy", "rich", "msgspec", "numba", "tomllib")),
        (("show", "--help"), ("numpy", "rich", "numba")),
        (("show", "roofline", "--help"), ("numpy", "rich", "numba")),
        *((tuple(line.split()), ("numpy", "rich", "numba", "scipy")) for line in WRONG),
    ],
    ids=lambda value: " ".join(value),
)
def test_help_loads_nothing_heavy(words: tuple[str, ...], heavy: tuple[str, ...]) -> None:
    code = (
        "import sys; from datahall.cli.main import run; run(sys.argv[1:]);"
        f"heavy = {heavy!r};"
        "print([name for name in heavy if name in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, check=True)
    assert done.stderr.endswith("[]\n")


def test_a_reader_that_leaves_is_no_error() -> None:
    read_end, write_end = os.pipe()
    os.close(read_end)
    with os.fdopen(write_end, "wb") as pipe:
        done = subprocess.run(command("catalog", "models"), stdout=pipe, stderr=subprocess.PIPE, check=False)
    assert (done.returncode, done.stderr) == (0, b"")


def test_a_reader_that_leaves_does_not_turn_a_no_into_a_yes() -> None:
    read_end, write_end = os.pipe()
    os.close(read_end)
    words = command("catalog", "prices", "--max-age", "1s")
    with os.fdopen(write_end, "wb") as pipe:
        done = subprocess.run(words, stdout=pipe, stderr=subprocess.PIPE, check=False)
    assert (done.returncode, done.stderr) == (1, b"")


@pytest.mark.parametrize("words", ["catalog models", "--help", "show chip h100 --json", "--version"])
def test_an_answer_for_a_closed_standard_output_is_not_lost_in_silence(words: str) -> None:
    done = subprocess.run(
        ["sh", "-c", f"{sys.executable} -m datahall {words} >&-"],
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr.startswith("error[output]: ")
    assert "closed" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_closed_standard_output_does_not_matter_to_a_file(tmp_path: Path) -> None:
    line = f"{sys.executable} -m datahall show chip h100 -o {tmp_path}/a.json >&-"
    assert subprocess.run(["sh", "-c", line], capture_output=True, check=False).returncode == 0
    assert (tmp_path / "a.json").stat().st_size > 100


def test_an_error_for_a_closed_standard_error_does_not_stand_among_the_data() -> None:
    line = f"{sys.executable} -m datahall show chip h10 2>&-"
    done = subprocess.run(["sh", "-c", line], stdout=subprocess.PIPE, check=False)
    assert (done.returncode, done.stdout) == (2, b"")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_behind_standard_output_is_said() -> None:
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            command("catalog", "chips"), stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert done.returncode == 2
    assert "No space left" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("more", "words", "coloured"),
    [
        ({"TERM": "xterm"}, (), True),
        ({"TERM": "xterm", "NO_COLOR": "1"}, (), False),
        ({"TERM": "dumb"}, (), False),
        ({"TERM": "xterm"}, ("--no-color",), False),
        ({"TERM": "xterm", "NO_COLOR": "1"}, ("--color",), True),
    ],
    ids=["terminal", "NO_COLOR", "dumb", "--no-color", "--color wins"],
)
def test_colour_on_a_terminal(more: dict[str, str], words: tuple[str, ...], coloured: bool) -> None:
    text = on_terminal(command("catalog", "chips", *words), environment(**more))
    assert (ESC in text) is coloured


@pytest.mark.parametrize("words", [(), ("--color",)], ids=["", "--color"])
def test_colour_in_a_pipe_only_when_asked(words: tuple[str, ...]) -> None:
    done = subprocess.run(
        command("catalog", "chips", *words), capture_output=True, text=True, check=True, env=environment()
    )
    assert (ESC in done.stdout) is bool(words)


def test_a_terminal_that_speaks_ascii_gets_an_answer() -> None:
    env = environment(PYTHONIOENCODING="ascii", PYTHONUTF8="0")
    done = subprocess.run(command("show", "chip", "h100"), capture_output=True, check=True, env=env)
    assert b"NVIDIA H100 SXM" in done.stdout


def test_standard_input_is_never_read() -> None:
    subprocess.run(command("show", "chip", "h100"), stdin=subprocess.DEVNULL, capture_output=True, check=True)
