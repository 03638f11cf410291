"""The table of collectives: what each moves; every closed form reads its row.  What runs it: `algorithms.table`.

What a collective sends message by message is in `steps.DECOMPOSITIONS`.  Whoever treats some collectives unlike others
asks their rows why, and not their names: the next one of that kind is a row here.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

from datahall.scenario.words import Collective

# how the data of a collective goes, which is what the formulas of an algorithm are made for: every rank has a share of
# the array to pass on, one rank's whole array goes to or from all, a piece from each to each, to the next one only
Way = Literal["shares", "copy", "pieces", "message"]
NUMBER_BYTES = 4.0  # of the one number on which a collective stands for another


class Moves(NamedTuple):
    """What one collective moves."""

    # what ranks have of the others' data in the end: all of it, added up or not; a share of the sum; a piece from
    # each; one rank's whole array; nothing
    result: Literal["sum", "whole", "share", "pieces", "copy", "nothing"]
    adds: bool = False  # ranks add up what they get
    num_bus_passes: int = 0  # busbw / algbw = passes · (n − 1)/n as nccl-tests defines it; 0: it is 1
    num_rounds: int = 1  # of n − 1 steps, as a ring
    is_rooted: bool = False  # one rank has or gets it all: a ring passes the whole array on
    is_pairwise: bool = False  # each rank sends to the next one only
    stands_for: Collective | None = None  # what runs in its place, on one number
    # on a torus: buckets along the axes so many times, pieces over the bisection, one link; None: nobody published it
    on_torus: Literal["buckets", "bisection", "link"] | None = None

    @property
    def is_sized(self) -> bool:
        """Whether somebody says how large its array is; what runs on one number has no bandwidth, and no other size."""
        return self.stands_for is None

    @property
    def goes_in_shares(self) -> bool:
        """Whether every step of a ring passes a share of the array on, and each rank has as many of them to pass."""
        return self.result in {"sum", "whole", "share"} and not self.is_rooted

    @property
    def way(self) -> Way | None:
        """How its data goes; None: no formula here is made for that, e.g. for a root that scatters pieces."""
        if self.goes_in_shares:
            return "shares"
        ways: dict[tuple[str, bool, bool], Way] = {
            ("copy", True, False): "copy",
            ("copy", False, True): "message",
            ("pieces", False, False): "pieces",
        }
        return ways.get((self.result, self.is_rooted, self.is_pairwise))


MOVES: dict[Collective, Moves] = {
    "all-reduce": Moves("sum", adds=True, num_bus_passes=2, num_rounds=2, on_torus="buckets"),
    "all-gather": Moves("whole", num_bus_passes=1, on_torus="buckets"),
    "reduce-scatter": Moves("share", adds=True, num_bus_passes=1, on_torus="buckets"),
    "all-to-all": Moves("pieces", num_bus_passes=1, on_torus="bisection"),
    "broadcast": Moves("copy", is_rooted=True),
    "reduce": Moves("copy", adds=True, is_rooted=True),
    "send-recv": Moves("copy", is_pairwise=True, on_torus="link"),
    "barrier": Moves("nothing", stands_for="all-reduce"),
}
