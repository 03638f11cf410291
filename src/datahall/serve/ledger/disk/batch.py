"""What has happened since the last group commit: sums by hour, key, model and outcome, and what is open."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from datahall.serve.ledger.disk.journal import Position, Record, Reserved, Settled
from datahall.serve.ledger.period import hour_of

Row: TypeAlias = tuple[int, int, str, str]  # hour, key, model, outcome
COLUMNS = (
    "requests", "prompt", "cached", "completion", "nano_usd", "wasted_nano_usd", "saved_prompt", "saved_completion",
    "saved_nano_usd",
)  # fmt: skip
UNSETTLED = "unsettled"


class Batch:
    """Records, summed; two batches make one that says the same."""

    __slots__ = ("closed", "opened", "position", "sums", "unsettled")

    def __init__(self) -> None:
        self.sums: dict[Row, list[int]] = {}
        self.opened: dict[int, Reserved] = {}
        self.closed: list[int] = []  # of those that an earlier batch opened
        self.unsettled: list[Settled] = []
        self.position = Position(0, 0)  # in the journal, after the last record of it

    def reserve(self, record: Reserved) -> None:
        """A request that is open from now on."""
        self.opened[record.request] = record

    def settle(self, record: Settled) -> None:
        """A request that is over, or was answered from a cache."""
        row = (hour_of(record.admitted_ns), record.key, record.model, record.outcome)
        sums = self.sums.get(row)
        if sums is None:
            sums = self.sums[row] = [0] * len(COLUMNS)
        usage, saved = record.usage, record.saved
        sums[0] += 1
        sums[1] += usage.prompt
        sums[2] += usage.cached
        sums[3] += usage.completion
        sums[4] += record.nano_usd
        sums[5] += record.wasted_nano_usd
        sums[6] += saved.prompt
        sums[7] += saved.completion
        sums[8] += record.saved_nano_usd
        if record.request and self.opened.pop(record.request, None) is None:
            self.closed.append(record.request)

    def add(self, records: Iterable[Record]) -> None:
        """Records as a journal has them."""
        for record in records:
            if isinstance(record, Reserved):
                self.reserve(record)
            else:
                self.settle(record)

    def followed_by(self, later: Batch) -> Batch:
        """Both as one, where the first could not be written."""
        for row, sums in later.sums.items():
            mine = self.sums.setdefault(row, [0] * len(COLUMNS))
            mine[:] = map(int.__add__, mine, sums)
        for request in later.closed:
            if self.opened.pop(request, None) is None:
                self.closed.append(request)
        self.opened |= later.opened
        self.unsettled += later.unsettled
        self.position = later.position
        return self

    def add_spent(self, spent: dict[int, int], start_ns: int) -> None:
        """Add what each key was charged from a moment on."""
        first = hour_of(start_ns)
        for (hour, key, _, _), sums in self.sums.items():
            if hour >= first:
                spent[key] = spent.get(key, 0) + sums[4]
