"""What the command line asks of its own process: settings that cost nothing and that another library may refuse."""

from __future__ import annotations

import ctypes
import gc
import os
import subprocess
import sys
from types import SimpleNamespace

import pytest

from datahall.cli import process


def test_a_pool_of_threads_that_was_asked_for_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = gc.get_threshold()
    try:
        for said, found in ((None, "1"), ("7", "7")):
            monkeypatch.delenv("OPENBLAS_NUM_THREADS", raising=False)
            if said is not None:
                monkeypatch.setenv("OPENBLAS_NUM_THREADS", said)
            process.settle()
            assert os.environ["OPENBLAS_NUM_THREADS"] == found
        assert gc.isenabled()  # a long run must not grow without end
        assert gc.get_threshold()[0] == process.OBJECTS_BEFORE_COLLECTING
        assert gc.get_threshold()[1:] == kept[1:]
    finally:
        gc.set_threshold(*kept)


def test_a_question_keeps_more_and_leaves_all_to_the_system() -> None:
    kept = gc.get_threshold()
    try:
        process.keep_memory()
        assert gc.isenabled()
        assert gc.get_threshold() == (process.OBJECTS_OF_A_QUESTION, *kept[1:])
        process.leave()
        assert gc.get_freeze_count() > 0
    finally:
        gc.unfreeze()
        gc.set_threshold(*kept)


def test_nothing_heavy_is_loaded_to_settle() -> None:
    code = "import sys; import datahall.cli.main; print('numpy' in sys.modules, 'ctypes' in sys.modules)"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.split() == ["False", "False"]


def test_a_library_without_the_setting_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ctypes, "CDLL", lambda _: SimpleNamespace())
    process.keep_memory()
    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.setattr(ctypes, "CDLL", None)
    process.keep_memory()


def test_the_library_is_told_what_to_keep(monkeypatch: pytest.MonkeyPatch) -> None:
    """As malloc.h of the GNU C library numbers them: when the heap is given back, and what is mapped apart."""
    told: dict[int, int] = {}
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(ctypes, "CDLL", lambda _: SimpleNamespace(mallopt=told.__setitem__))
    process.keep_memory()
    assert told == {-1: 2**30, -3: 2**25}
