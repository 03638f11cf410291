"""No crash, no hang, no number that is none: every question ends in 0, 1 or 2 and says something."""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from tests.first_look.conftest import Outcome, Run
from tests.first_look.figures import waits_for

from datahall.catalog import Catalog

NO_NUMBER = re.compile(r"\b(?:inf|nan|NaN)\b|\bInfinity\b(?! Cache| Fabric)")
CHIPS = sorted(chip.name for chip in Catalog(user=False).chips())
UNUSUAL = ("h20", "epyc-9654", "groq-lpu", "tpu-v4", "trainium2", "mi300x", "l4")
EXTREME = (
    "plan serve llama-3.1-8b --rate 1 --chips h20",
    "plan serve llama-3.1-8b --rate 1 --chips epyc-9654",
    "plan train llama-3.1-8b --tokens 1T --chip h100 --deadline 1s",
    "plan train llama-3.1-8b --tokens 1T --chip h20 --deadline 1s",
    "show model llama-3.1-8b --context 2^9999",
    "show model llama-3.1-8b --batch 2^9999",
    "show collective all-reduce --chips 2^9999 --size 1GB",
    "show collective all-reduce --chips 8 --size 2^9999",
    "simulate train llama-3.1-8b --chips 2^9999",
    "plan train llama-3.1-8b --tokens 2^9999 --chips 8",
    "simulate serve llama-3.1-8b --rate 2^9999",
    'simulate serve llama-3.1-8b --rate 1 --host-cache "9e30 GB"',
    'simulate serve llama-3.1-8b --rate 1 --drive-cache "9e30 GB"',
    "simulate serve llama-3.1-8b --rate 1e308",
    "simulate serve llama-3.1-8b --rate 1e11 --requests 50",
    "simulate serve llama-3.1-8b --rate 1e-300 --requests 5",
    "plan serve llama-3.1-8b --rate 1e308",
    "plan serve llama-3.1-8b --users 1e308",
    "show techniques llama-3.1-8b --rate 1e11",
    "show roofline h200 --model llama-3.1-8b --batch 1e9",
    "show hierarchy h100 --working-set 9e30GB",
    "show fabric fat-tree --chips 2^9999",
    "simulate fabric --on fat-tree --chips 64 --job collective=all-reduce,ranks=64,size=2^9999",
)


def well_ended(done: Outcome) -> None:
    assert done.code in (0, 1, 2)
    assert done.out or done.err
    assert "Traceback" not in done.err
    assert not NO_NUMBER.search(re.sub(r"[\"'].*?[\"']", "", done.out + done.err)), done.out + done.err


@pytest.mark.parametrize("line", EXTREME)
def test_extreme_questions_end_well(line: str, datahall: Run) -> None:
    well_ended(datahall(*shlex.split(line)))


@pytest.mark.parametrize(
    "line",
    [
        "show chip {}",
        "show roofline {} --model llama-3.1-8b",
        "show fit llama-3.1-8b --chip {}",
        "show hierarchy {}",
        "show memory llama-3.1-8b --chip {} --tp 2",
        "show collective all-reduce --chip {} --chips 16 --size 64MB",
    ],
)
def test_every_chip_has_an_answer_or_a_reason(line: str, datahall: Run) -> None:
    for chip in CHIPS:
        well_ended(datahall(*line.format(chip).split(), "--format", "md"))


def test_unusual_chips_serve_or_say_why_not(datahall: Run) -> None:
    """One that nothing is known of, one with no tensor units, one whose memory is a few hundred megabytes."""
    for chip in UNUSUAL:
        assert chip in CHIPS
        well_ended(datahall(*f"plan serve llama-3.1-8b --rate 1 --chips {chip}".split()))
    well_ended(datahall(*f"show techniques llama-3.1-8b --rate 1 --chip {UNUSUAL[0]}".split()))


def test_a_closed_standard_output_is_said_without_a_traceback() -> None:
    line = f"{sys.executable} -m datahall show fit llama-3.1-8b --chip h200 >&-"
    done = subprocess.run(["sh", "-c", line], stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 2
    assert "closed" in done.stderr
    assert "Traceback" not in done.stderr


@contextmanager
def interrupted_after(seconds: float) -> Iterator[None]:
    """Ctrl-C, pressed once."""
    timer = threading.Timer(seconds, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def ten_billion(datahall: Run) -> Outcome:
    with interrupted_after(1.5):
        return datahall(*["simulate", "serve", "llama-3.1-8b", "--rate", "1", "--requests", "10^10"])


def test_ten_billion_requests_can_be_interrupted(datahall: Run) -> None:
    done = ten_billion(datahall)
    assert done.code == 130
    assert "interrupted" in done.err


@waits_for("an estimate of how long a run takes before it starts, and progress while it runs")
def test_ten_billion_requests_say_how_long_they_take(datahall: Run) -> None:
    done = ten_billion(datahall)
    assert re.search(r"10,000,000,000|\d+ (h|days|min)", done.err)
