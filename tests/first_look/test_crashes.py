"""No crash, no hang, no number that is none: every question ends in 0, 1 or 2 and says something."""

from __future__ import annotations

import logging
import os
import re
import shlex
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator

import pytest
from tests.first_look.conftest import Outcome, Run

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


class CtrlC(logging.Handler):
    """Somebody who reads the first remark on how far a run is, and presses Ctrl-C."""

    said = ""

    def emit(self, record: logging.LogRecord) -> None:
        if "requests simulated" in record.getMessage():
            self.said = record.getMessage()
            signal.raise_signal(signal.SIGINT)


@pytest.fixture
def reader() -> Iterator[CtrlC]:
    usual = signal.signal(signal.SIGINT, signal.default_int_handler)  # what runs in the background ignores it
    log, reader = logging.getLogger("datahall"), CtrlC()
    before, patience = log.level, threading.Timer(60, os.kill, (os.getpid(), signal.SIGINT))
    log.addHandler(reader)
    log.setLevel(logging.INFO)
    patience.start()
    yield reader
    patience.cancel()
    log.removeHandler(reader)
    log.setLevel(before)
    signal.signal(signal.SIGINT, usual)


def test_ten_billion_requests_say_how_long_they_take_and_can_be_interrupted(
    datahall: Run, reader: CtrlC
) -> None:
    done = datahall(*shlex.split("simulate serve llama-3.1-8b --rate 1 --requests 10^10"))
    assert done.code == 130
    assert "interrupted" in done.err
    assert re.search(
        r"of 10,000,000,000 requests simulated; the others take about [\d.,]+ (min|h|days)", reader.said
    )
    assert "Ctrl-C" in reader.said
