"""One chip: how long its kernels take, what binds them, and what its memory hierarchy does to a working set.

Kernel models are closed forms over columns; constants come from `data/constants.json` at one of three levels.
"""

from __future__ import annotations

from datahall.silicon.calibration import Calibration, calibrate
from datahall.silicon.hierarchy import cliff
from datahall.silicon.kernel import KernelTime, PassTimes, time_operators
from datahall.silicon.roofline import ridge_intensity, roofline_time

__all__ = [
    "Calibration",
    "KernelTime",
    "PassTimes",
    "calibrate",
    "cliff",
    "ridge_intensity",
    "roofline_time",
    "time_operators",
]
