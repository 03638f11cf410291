"""How a fleet fills over time: read every so often while it runs, the seldomer the longer that is.

A run begins with a reading every `FIRST_S`; where there is no more room, every other one goes and the time between
them doubles, so that a run of any length has `NUM_LOOKS`/2 to `NUM_LOOKS` of them.
"""

from __future__ import annotations

from datahall.compiled import inline
from datahall.inference.simulation.decode_clock import leap_time
from datahall.inference.simulation.scheduler import DECODES
from datahall.inference.simulation.state import State

NUM_LOOKS = 240  # at most
FIRST_S = 0.125  # between two readings, until there are too many


@inline
def look(s: State, now: float) -> None:
    """Read the fleet at the moments that have passed since the last event: nothing has begun or ended since then."""
    fleet = s.fleet[0]
    while fleet["look_s"] <= now:
        if fleet["num_looks"] == s.looks.size:
            halve(s)
            continue
        time_s, running, used = fleet["look_s"], 0, 0.0
        for replica in range(s.replicas.size):
            rep = s.replicas[replica]
            running += rep["running"]
            used += s.pools[rep["pool"]]["blocks"] - rep["free"] + grown(s, replica, time_s)
        one = s.looks[fleet["num_looks"]]
        one["time_s"], one["running"], one["used"] = time_s, running, used
        one["waiting_area_s"] = fleet["waiting_area_s"] + fleet["num_waiting"] * (
            time_s - fleet["waiting_since_s"]
        )
        fleet["num_looks"] += 1
        fleet["look_s"] = time_s + fleet["every_s"]


@inline
def grown(s: State, replica: int, time_s: float) -> float:
    """Blocks that those who decode have taken since their steps in flight began, expected: a replica counts them later.

    The share of the steps that have passed, of a token each for every request.
    """
    rep = s.replicas[replica]
    pool = s.pools[rep["pool"]]
    if rep["in_flight"] != DECODES or rep["leap"] <= 1:
        return 0.0
    passed = (time_s - rep["start_s"]) / leap_time(rep["step_s"], rep["growth_s"], rep["leap"])
    return float(passed * rep["leap"] * rep["decoding"] * pool["tokens_per_step"] / pool["block_tokens"])


@inline
def halve(s: State) -> None:
    """Leave out every other reading; the last one stays."""
    fleet = s.fleet[0]
    fleet["num_looks"] //= 2
    for place in range(fleet["num_looks"]):
        one, kept = s.looks[place], s.looks[2 * place + 1]
        one["time_s"], one["running"], one["used"] = kept["time_s"], kept["running"], kept["used"]
        one["waiting_area_s"] = kept["waiting_area_s"]
    fleet["every_s"] *= 2.0
    fleet["look_s"] = s.looks[fleet["num_looks"] - 1]["time_s"] + fleet["every_s"]
