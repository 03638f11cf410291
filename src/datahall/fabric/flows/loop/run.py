"""The events of the flow simulation in order of time: arrivals, completions, changes of capacity."""

from __future__ import annotations

import numpy as np

from datahall.compiled import Kernel
from datahall.events.queue import new_queue, now_s, num_pending
from datahall.events.schedule import peek, pop
from datahall.fabric.flows.loop.cycle import look_back
from datahall.fabric.flows.loop.rounds import end, schedule
from datahall.fabric.flows.loop.sharing import begin, finish, leave, narrow, settle, share_again, turn_off
from datahall.fabric.flows.loop.state import END, START, State, delay_of
from datahall.fabric.topology.graph import Floats, Ints


def _run(
    s: State,
    change_s: Floats,
    change_link: Ints,
    change_bytes_per_s: Floats,
    until_s: float,
    grain: float,
    head_of_line: bool,
    whole: bool,
) -> bool:
    """Play every event in order of time; False where there is no room to write more messages down.

    Events that follow the end of a flow within `grain` of the time it took are taken with it, before rates are
    shared again.  Each still has its own time; only the others learn of it so much later.
    """
    now, next_change, next_detour = 0.0, 0, 0
    for flow in range(s.flows.size):
        if s.flows[flow]["waiting"] == 0:
            schedule(s, flow, 0.0)
    while num_pending(s.queue) > 0 or next_change < change_s.size or next_detour < s.detours.size:
        soon = peek(s.queue).time_s if num_pending(s.queue) > 0 else np.inf
        if next_change < change_s.size:
            soon = min(soon, change_s[next_change])
        if next_detour < s.detours.size:
            soon = min(soon, s.detours[next_detour]["at_s"])
        if soon > until_s:
            break
        now = max(now, soon)
        together = now * (1.0 + 1e-12)
        if grain > 0.0 and num_pending(s.queue) > 0:
            event = peek(s.queue)
            if event.kind == END:
                took_s = event.time_s - s.flows[event.a]["ready_s"] - delay_of(s, event.a)
                together += grain * max(0.0, took_s)
        while num_pending(s.queue) > 0 and peek(s.queue).time_s <= together:
            event = pop(s.queue)
            s.counts[0]["events"] += 1
            if event.kind == START and s.flows[event.a]["num_bytes"] > 0.0:
                begin(s, event.a, event.time_s)
                continue
            if s.log.size and s.counts[0]["messages"] == s.log.size:
                return False
            if event.kind == END:
                finish(s, event.a)
            end(s, event.a, event.time_s)
        now = max(now, now_s(s.queue))
        while next_change < change_s.size and change_s[next_change] <= together:
            s.counts[0]["events"] += 1
            narrow(s, change_link[next_change], change_bytes_per_s[next_change])
            next_change += 1
        while next_detour < s.detours.size and s.detours[next_detour]["at_s"] <= together:
            detour = s.detours[next_detour]
            turn_off(s, detour["flow"], detour["first"], detour["last"], now)
            next_detour += 1
        share_again(s, now, head_of_line, whole)
        if s.counts[0]["due"]:
            s.counts[0]["due"] = False
            if next_change == change_s.size and next_detour == s.detours.size and until_s == np.inf:
                look_back(s, now)
    for flow in s.active[
        : s.counts[0]["active"]
    ]:  # cut off by until_s, or stuck behind a link that carries nothing
        if until_s < np.inf:
            settle(s, flow, until_s)
        leave(s, flow, s.flows[flow]["num_bytes"] - s.flows[flow]["left"] - s.flows[flow]["counted"])
    return True


run = Kernel(_run, compile_s=20.0)
make_queue = Kernel(new_queue, compile_s=2.0)
