"""`make bench`: how fast it is here, as ratios to a floor measured in the same run.

Each figure is the least CPU time of five runs, unless it says otherwise.  A missed budget is said and is
no failure: machines differ.
"""

from __future__ import annotations

import os
import platform

import numba
import numpy as np
from books import book_lines
from commands import command_lines
from gateway import gateway_lines
from kernels import kernel_lines, pass_lines
from model_server import model_server_lines
from serving import serving_lines
from startup import catalogue_lines, startup_lines
from table import printed
from virtual import virtual_lines

from events import event_lines
from fabric import fabric_lines
from reliability import run_lines
from scheduling import scheduling_lines
from training import training_lines


def main() -> None:
    """Measure everything and print one table."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    versions = f"Python {platform.python_version()}, NumPy {np.__version__}, Numba {numba.__version__}"
    print(
        f"{cores} cores of {platform.machine()}, load {os.getloadavg()[0]:.1f}; {versions}; one core used\n"
    )
    print(
        printed(
            [
                *startup_lines(),
                *book_lines(),
                *catalogue_lines(),
                *command_lines(),
                *kernel_lines(),
                *pass_lines(),
                *event_lines(),
                *scheduling_lines(),
                *fabric_lines(),
                *training_lines(),
                *serving_lines(),
                *run_lines(),
                *model_server_lines(),
                *gateway_lines(),
                *virtual_lines(),
            ]
        )
    )
    print(f"\nload at the end {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
