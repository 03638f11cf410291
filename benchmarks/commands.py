"""Whole commands in a fresh process: warm, and the first one after an install."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from clock import process_cpu_s
from table import Line

GOLDEN = "plan serve llama-3.1-70b --users 10000 --ttft 1s --tpot 50ms --chips h100-sxm,h200,b200,mi300x"
# what is asked, and the CPU-seconds that it may take
WARM = {
    GOLDEN: 0.9,
    "plan train llama-3.1-405b --tokens 15.6T --chips 16384": 0.9,
    "validate training": 4.0,
    "validate inference": 8.0,
}
FIRST_RUN_S = 8.0
ROOT = Path(__file__).resolve().parent.parent


def command_lines() -> list[Line]:
    """Least CPU time of several runs, and the wall time of the golden plan on an empty cache."""
    return [
        *(
            Line(
                f"datahall {' '.join(line.split()[:3])}, CPU",
                process_cpu_s("-m", "datahall", *line.split()),
                "s",
                budget=budget,
            )
            for line, budget in WARM.items()
        ),
        Line(
            "datahall plan serve, first run after a wheel install, wall",
            first_run_s(),
            "s",
            budget=FIRST_RUN_S,
        ),
    ]


def first_run_s() -> float:
    """Wall time of the golden plan after a plain install of a wheel, where nothing was compiled before [s]."""
    with tempfile.TemporaryDirectory() as folder:
        pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "-q"]
        subprocess.run([*pip, "wheel", "--no-deps", "-w", folder, str(ROOT)], check=True)
        (wheel,) = Path(folder).glob("*.whl")
        installed, empty = f"{folder}/installed", f"{folder}/empty"
        subprocess.run([*pip, "install", "--no-deps", "--target", installed, str(wheel)], check=True)
        env = {**os.environ, "NUMBA_CACHE_DIR": empty, "PYTHONPATH": installed}
        start = time.perf_counter()
        subprocess.run(
            [sys.executable, "-m", "datahall", *GOLDEN.split()],
            check=True, cwd=folder, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        return time.perf_counter() - start
