"""The simulation of a fleet, played piece by piece while requests come that nobody knew of before.

A request gets its slot when it arrives, as a row of a recorded run would.  Steps that the simulation leaps over are
told one by one: the time of each follows from the leap, and a request that cuts the leap changes none that has passed.
"""

from __future__ import annotations

from math import inf, isfinite

import msgspec
import numpy as np

from datahall.events.heap import ROOT
from datahall.events.queue import num_pending
from datahall.events.schedule import push
from datahall.events.streams import stream
from datahall.events.unchecked_queue import push_event
from datahall.inference.fleet.fleet import Fleet
from datahall.inference.simulation.decode_clock import leap_time
from datahall.inference.simulation.loop import advance
from datahall.inference.simulation.run import STATUS_NAMES
from datahall.inference.simulation.scheduler import DECODES
from datahall.inference.simulation.setup import new_state, stack, step_tables
from datahall.inference.simulation.simulate import ALWAYS
from datahall.inference.simulation.state import (
    ACTIVE,
    ALL_ROWS,
    ARRIVE,
    DRAINING,
    FINISHED,
    NEED_RECORDS,
    NONE,
    OFF,
    PREFILL,
    STATUS,
    State,
    take_slot,
)
from datahall.serve.virtual.leaving import leave

SPARE = 3  # slots that the loop may want at once


class Told(msgspec.Struct, frozen=True):
    """What a request hears: so many tokens more, and whether these were the last."""

    row: int
    at_s: float  # when its client has them
    num_tokens: int
    is_last: bool = False
    refused: str = ""  # why it was never run
    hit: int = 0  # tokens of the prompt that a cache held; of the last


class Course:
    """One fleet from time 0 on."""

    def __init__(self, fleet: Fleet, *, num_slots: int = 8192, seed: int = 0, compiled: bool = True) -> None:
        self.fleet = fleet
        tables = step_tables(fleet)
        self.state: State = new_state(
            fleet, tables, caching=False, record=True, trace_steps=0, num_slots=num_slots
        )
        whole = self.state.fleet[0]
        whole["last_rows"] = whole["rows_out"] = 1  # requests come by themselves, not as rows
        take_slot(self.state)  # one that nobody gives back: a fleet that is empty has not ended
        whole["users_until_s"] = whole["measure_until_s"] = inf
        whole["most_arrivals"], whole["max_leap"] = ALL_ROWS, ALWAYS
        for outage in fleet.outages:
            self.take_out(outage.replica, outage.start_s, outage.duration_s, drain=outage.drain)
        laid = stack(tables)
        self._advance = advance.bound(self.state, laid) if compiled else None
        self._tables = laid
        self._luck = stream(seed, "serving", "speculation")
        self._picks = stream(seed, "serving", "routing")
        self._speculates = any(pool.replica.speculation for pool in fleet.pools)
        self.now_s = 0.0  # until when it was played
        self._num_rows = 0
        self._slot_of: dict[int, int] = {}
        self._told = np.zeros(num_slots, np.int64)
        self._leap = np.full((len(self.state.replicas), 2), -1.0)  # start and clock of the leap that is told
        self._passed = np.zeros(len(self.state.replicas), np.int64)  # its steps that have been

    @property
    def has_room(self) -> bool:
        """Whether another request may come."""
        return bool(self.state.fleet[0]["num_free_slots"] > SPARE)

    @property
    def num_held(self) -> int:
        """Requests that wait before the router, as no replica is up that could take them."""
        found, slot = 0, int(self.state.fleet[0]["held"])
        while slot != NONE:
            found, slot = found + 1, int(self.state.slots[slot]["waits"])
        return found

    def next_s(self) -> float:
        """When something is due: an event, or a step of a leap."""
        return min(self._event_s(), float(self._ticks_s().min()))

    def arrive(self, at_s: float, prompt: int, output: int) -> tuple[int, list[Told]]:
        """A request comes, not before anything that was played; its number, and what was due until then."""
        told = self.play(at_s)
        row, slot = self._num_rows, take_slot(self.state)
        self._num_rows += 1
        one = self.state.slots[slot]
        for name in (
            "shared",
            "session",
            "priority",
            "region",
            "cached",
            "key_start",
            "key_count",
            "emitted",
        ):
            one[name] = 0
        for name in ("group", "child", "sibling", "place", "replica"):
            one[name] = NONE
        one["row"], one["prompt"], one["output"], one["session"] = row, prompt, output, row
        one["answer_s"], one["arrival_s"] = -1.0, at_s
        if self._speculates:
            one["luck"] = self._luck.standard_normal()
        if self.fleet.routing == "two-choices":
            one["pick"] = self._picks.integers(0, 1 << 62)
        self._slot_of[row], self._told[slot] = slot, 0
        push_event(self.state.queue, at_s, ARRIVE, slot, 0, 0.0)
        return row, told + self.play(at_s)

    def leave(self, row: int) -> None:
        """The client of a request has gone: it takes no more than the step that is under way."""
        slot = self._slot_of.get(row, NONE)
        if slot == NONE:
            return
        replica = int(self.state.slots[slot]["replica"])
        if leave(self.state, slot, int(self._passed[replica]) if replica != NONE else 0, self.now_s):
            del self._slot_of[row]

    def take_out(self, replica: int, at_s: float, duration_s: float, *, drain: bool = False) -> None:
        """A replica fails, or is drained, for a while."""
        queue = self.state.queue
        push(queue, at_s, STATUS, replica, DRAINING if drain else OFF, priority=STATUS)
        if isfinite(duration_s):
            push(queue, at_s + duration_s, STATUS, replica, ACTIVE, priority=STATUS)

    def play(self, until_s: float) -> list[Told]:
        """All that happens up to a time, in its order."""
        told: list[Told] = []
        while True:
            ticks_s = self._ticks_s()
            event_s, tick_s = self._event_s(), float(ticks_s.min())
            if min(event_s, tick_s) > until_s:
                self.now_s = max(self.now_s, until_s)
                return told
            if event_s <= tick_s:
                while self._run(event_s) == NEED_RECORDS:
                    told += self._ended()
                told += self._ended()
                told += self._tokens(event_s)
            else:
                self._passed[ticks_s == tick_s] += 1
                told += self._tokens(tick_s)

    def _run(self, until_s: float) -> int:
        if self._advance is None:
            return int(advance.interpreted(self.state, self._tables, until_s))
        return int(self._advance(until_s))

    def _event_s(self) -> float:
        queue = self.state.queue
        return float(queue.heap[ROOT]["time_s"]) if num_pending(queue) else inf

    def _ticks_s(self) -> np.ndarray:
        """When the next step of each replica's leap has ended; the last of a leap is an event."""
        rep, passed = self.state.replicas, self._passed
        fresh = (self._leap[:, 0] != rep["start_s"]) | (self._leap[:, 1] != rep["clock"])
        if fresh.any():
            passed[fresh] = 0
            self._leap[fresh, 0], self._leap[fresh, 1] = rep["start_s"][fresh], rep["clock"][fresh]
        steps = passed + 1
        ends_s = rep["start_s"] + leap_time(rep["step_s"], rep["growth_s"], steps)  # type: ignore[arg-type]
        leaps = (rep["in_flight"] == DECODES) & (steps < rep["leap"])
        return np.where(leaps, ends_s, inf)

    def _tokens(self, at_s: float) -> list[Told]:
        """Who has more tokens than was told."""
        live = np.fromiter(self._slot_of.values(), np.int64, len(self._slot_of))
        if not live.size:
            return []
        self._ticks_s()
        one = self.state.slots[live]
        rep = self.state.replicas[one["replica"]]
        pool = self.state.pools[rep["pool"]]
        steps = rep["clock"] - one["clock"] + self._passed[one["replica"]]
        made = np.minimum((steps * pool["tokens_per_step"]).astype(np.int64), one["output"] - one["emitted"])
        total = one["emitted"] + np.where(one["place"] != NONE, made, 0)
        handed = (pool["role"] == PREFILL) & (one["parked"] == 0) & (one["emitted"] == 1)
        more = np.where(handed, 0, total - self._told[live])
        told = [
            Told(int(one["row"][place]), at_s + float(one["delay_s"][place]), int(more[place]))
            for place in np.flatnonzero(more > 0)
        ]
        self._told[live] += np.maximum(more, 0)
        return told

    def _ended(self) -> list[Told]:
        """Who has ended since it was looked at, with the tokens that were not told yet."""
        whole, told = self.state.fleet[0], []
        for record in self.state.ended[: whole["num_ended"]]:
            row = int(record["row"])
            slot = self._slot_of.pop(row)
            refused = "" if record["status"] == FINISHED else STATUS_NAMES[record["status"]]
            num = 0 if refused else int(record["output"] - self._told[slot])
            told.append(Told(row, float(record["end_s"]), num, True, refused, int(record["hit"])))
        whole["num_ended"] = 0
        return told
