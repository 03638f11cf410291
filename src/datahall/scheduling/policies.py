"""The policies of a queue: who is first, who may pass him, which nodes he gets, and who makes room."""

from __future__ import annotations

import msgspec

from datahall.scenario.words import BY_USE, QUEUE_POLICIES, QueuePolicy
from datahall.scheduling.loop.state import (
    BY_PRIORITY,
    BY_SUBMIT,
    BY_USAGE,
    CONSERVATIVE,
    EASY,
    FIRST_FIT,
    NEAREST,
    NOBODY,
    WHO_FITS,
)


class Rules(msgspec.Struct, frozen=True, kw_only=True):
    """What a policy does; a job starts with all of its chips at once or not at all, whichever it is."""

    title: str
    order: int = BY_SUBMIT
    passing: int = EASY
    placement: int = FIRST_FIT
    preempts: bool = False
    defragments: bool = False

    @property
    def stops(self) -> bool:
        """Whether jobs that may be are stopped or moved for others."""
        return self.preempts or self.defragments


RULES: dict[QueuePolicy, Rules] = {
    "fifo": Rules(title="in order; nobody passes the first", passing=NOBODY),
    "gang": Rules(title="in order; whoever fits whole starts, nobody is promised a time", passing=WHO_FITS),
    "backfill": Rules(title="EASY: whoever does not delay the first may pass him"),
    "conservative": Rules(title="whoever delays nobody may pass", passing=CONSERVATIVE),
    "fair-share": Rules(title="EASY, by the least decayed use", order=BY_USAGE),
    "priority": Rules(
        title="EASY, by priority; lower ones that may be stopped make room", order=BY_PRIORITY, preempts=True
    ),
    "topology": Rules(
        title="EASY, on the fewest leaves and pods, in the tightest that fit", placement=NEAREST
    ),
    "defragment": Rules(
        title="as topology; small jobs are moved together where that makes room",
        placement=NEAREST,
        defragments=True,
    ),
}
assert tuple(RULES) == QUEUE_POLICIES
assert tuple(name for name, one in RULES.items() if one.order == BY_USAGE) == BY_USE
