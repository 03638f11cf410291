"""Collectives: published algorithms as pure functions, and what NCCL and its kin make of them on a real machine.

`choose_collective` answers one question on a `System`; `collective_times` does it for whole columns of sizes.
"""

from __future__ import annotations

from datahall.fabric.collectives.algorithms.bus import COLLECTIVES, Collective, bus_bandwidth, bus_factor
from datahall.fabric.collectives.choice import Choice, choose_collective, collective_times
from datahall.fabric.collectives.system import System, system_of

__all__ = [
    "COLLECTIVES",
    "Choice",
    "Collective",
    "System",
    "bus_bandwidth",
    "bus_factor",
    "choose_collective",
    "collective_times",
    "system_of",
]
