"""A kernel finds the inline functions it calls, and its cached code goes stale when one of them changes."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

from datahall.compiled import inlined_in
from datahall.events import phold

PART = """
from datahall.compiled import inline

@inline
def part(value):
    return value + {added}
"""
WHOLE = """
from datahall.compiled import Kernel
from part import part

def _whole(value):
    return part(value) * 2

print(Kernel(_whole)(1), Kernel(_whole).interpreted(1))
"""


def test_inlined_functions_are_found_through_those_that_call_them() -> None:
    names = {part.__name__ for part in inlined_in(phold.visit.interpreted)}
    assert {"pop", "peek", "sink", "first_of", "philox", "log", "record", "next_process"} <= names
    assert "reserve" not in names


def test_cached_code_is_not_used_after_a_change_in_an_inlined_function(tmp_path: Path) -> None:
    (tmp_path / "whole.py").write_text(WHOLE)
    source = Path(importlib.util.find_spec("datahall").origin or "").parents[1]  # type: ignore[union-attr]
    env = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path), "PYTHONPATH": f"{source}:{tmp_path}"}
    said = []
    for added in (1, 10):
        (tmp_path / "part.py").write_text(PART.format(added=added))
        run = subprocess.run(
            [sys.executable, "-B", "whole.py"],
            cwd=tmp_path,
            env=env,
            capture_output=True,
            text=True,
            check=True,
        )
        said.append(run.stdout.split())
    assert said == [["4", "4"], ["22", "22"]]


def test_the_room_loads_no_compiler() -> None:
    check = "import sys, datahall.events; sys.exit('numba' in sys.modules)"
    subprocess.run([sys.executable, "-c", check], check=True)
