"""Calculon beside us, where a checkout of it is at hand: CALCULON_DIR=/path make bench.

Its own search command says how many executions it calculated per second; one process, as ours.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

RECORDED_PER_S = (40.0, 160.0)  # on a machine of this kind, 2026-11
MODEL, SYSTEM, NUM_CHIPS, BATCH = "models/megatron-126M.json", "systems/a100_80g.json", "8", "16"
RATE = re.compile(r"Calculation rate: ([\d.]+)")
MOST_S = 300.0


def calculon_rate() -> tuple[float, str]:
    """Executions per second and core, and whether that was measured in this run or is as recorded."""
    folder = os.environ.get("CALCULON_DIR", "")
    if not folder:
        return RECORDED_PER_S[1], "as recorded, 40–160/s; CALCULON_DIR names no checkout"
    home = Path(folder).resolve()
    with tempfile.TemporaryDirectory() as out:
        command = [
            sys.executable, "bin/calculon", "llm-optimal-execution", MODEL, NUM_CHIPS, BATCH, "float16", SYSTEM,
            f"{out}/best.json", "-n", "-c", "1",
        ]  # fmt: skip
        try:
            run = subprocess.run(
                command,
                cwd=home,
                env=os.environ | {"PYTHONPATH": str(home)},
                capture_output=True,
                text=True,
                timeout=MOST_S,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            return RECORDED_PER_S[1], f"as recorded, 40–160/s; it did not run: {type(error).__name__}"
    found = RATE.search(run.stdout + run.stderr)
    if found is None:
        last = (run.stderr.strip() or run.stdout.strip() or "no output").splitlines()[-1]
        return RECORDED_PER_S[1], f"as recorded, 40–160/s; it did not run: {last[:60]}"
    return float(found[1]), "measured in this run"
