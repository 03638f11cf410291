"""The machine code that a wheel carries: a first plan, and a first simulated service, then compile nothing.

It runs on every processor of the architecture that it was made on.  Elsewhere, and with another source, a loop is
compiled on its first use, as in a checkout.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

SOURCE = Path(__file__).resolve().parent.parent / "src"
SHIPPED = SOURCE / "datahall" / "shipped"

# Together they run every loop that needs nothing but its machine code.
ASKED = (
    "plan serve llama-3.1-8b --rate 4 --ttft 1s --chips h100-sxm",
    "plan train llama-3.1-405b --tokens 15T --chips 16384",
    "simulate cluster --chips 8 --cluster-job chips=1,run=1h,count=400",
)


def compile_loops(folder: Path = SHIPPED) -> None:
    """Ask what needs the loops on an empty cache, and take the machine code that was kept."""
    with tempfile.TemporaryDirectory() as empty:
        env = {**os.environ, "NUMBA_CACHE_DIR": empty, "PYTHONDONTWRITEBYTECODE": "1"}
        for line in ASKED:
            subprocess.run(
                [sys.executable, "-m", "datahall", *line.split()],
                cwd=SOURCE, env=env, check=True, stdout=subprocess.DEVNULL,
            )  # fmt: skip
        folder.mkdir(exist_ok=True)
        for code in Path(empty).rglob("*.code"):
            shutil.copy(code, folder)
