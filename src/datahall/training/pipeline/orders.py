"""Published orders of pipeline work, as each stage's list of (kind, micro-batch, chunk, joined); whose: `table.py`."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

# forward; backward for the input; backward for the weights; both backwards as one piece of work
F, B, W, FULL = 0, 1, 2, 3

Row: TypeAlias = tuple[int, int, int, bool]  # kind, micro-batch, chunk, runs together with the next


class Counts(NamedTuple):
    """How large a pipeline is."""

    num_stages: int
    num_micro: int  # micro-batches of a step
    num_chunks: int  # of each stage


def gpipe(counts: Counts) -> list[list[Row]]:
    """All forwards, then all backwards."""
    num_stages, num_micro, _ = counts
    forward = [(F, micro, 0, False) for micro in range(num_micro)]
    backward = [(FULL, micro, 0, False) for micro in range(num_micro)]
    return [forward + backward for _ in range(num_stages)]


def one_forward_one_backward(counts: Counts) -> list[list[Row]]:
    """Fill with as many forwards as stages follow, then one backward for each forward, then drain."""
    num_stages, num_micro, _ = counts
    forward = [(F, micro, 0, False) for micro in range(num_micro)]
    backward = [(FULL, micro, 0, False) for micro in range(num_micro)]
    return [_alternate(forward, backward, num_stages - 1 - stage) for stage in range(num_stages)]


def _alternate(forward: list[Row], backward: list[Row], num_ahead: int) -> list[Row]:
    """The first `num_ahead` forwards, then forward and backward in turn, then the backwards left over."""
    ahead = min(num_ahead, len(forward))
    turns = [one for pair in zip(forward[ahead:], backward, strict=False) for one in pair]
    return forward[:ahead] + turns + backward[len(forward) - ahead :]


def interleaved(counts: Counts) -> list[list[Row]]:
    """Each stage holds several chunks and takes `num_stages` micro-batches through one before the next.

    Stage s runs 2(p − s − 1) + (v − 1)p chunks ahead, as Megatron-LM does.
    """
    p, num_micro, v = counts
    if v == 1:
        return one_forward_one_backward(counts)
    order = [
        (first + micro, chunk) for first in range(0, num_micro, p) for chunk in range(v) for micro in range(p)
    ]
    forward = [(F, micro, chunk, False) for micro, chunk in order]
    backward = [(FULL, micro, v - 1 - chunk, False) for micro, chunk in order]
    return [_alternate(forward, backward, 2 * (p - s - 1) + (v - 1) * p) for s in range(p)]


def zero_bubble(counts: Counts) -> list[list[Row]]:
    """1F1B with the weight gradients taken out of backward and stage s doing them s micro-batches late.

    The stages nearest to the loss drain first: what they put off is what they do while the rest drains.
    In-flight activations stay at those of 1F1B's first stage.
    """
    num_stages, num_micro, _ = counts
    rows: list[list[Row]] = []
    for stage in range(num_stages):
        ahead = min(num_stages - 1 - stage, num_micro)
        row: list[Row] = [(F, micro, 0, False) for micro in range(ahead)]
        for micro in range(num_micro):
            if micro + ahead < num_micro:
                row.append((F, micro + ahead, 0, False))
            row.append((B, micro, 0, False))
            if micro >= stage:
                row.append((W, micro - stage, 0, False))
        rows.append(row + [(W, micro, 0, False) for micro in range(max(0, num_micro - stage), num_micro)])
    return rows


def dualpipe(counts: Counts) -> list[list[Row]]:
    """Micro-batches enter at both ends; forwards of one way run together with backwards of the other."""
    num_stages, num_micro, _ = counts
    return [_DualRank(stage, num_stages, num_micro).row() for stage in range(num_stages)]


class _DualRank:
    """One stage of DualPipe while its list is written; way 0 is the one that reaches it first."""

    def __init__(self, stage: int, num_stages: int, num_micro: int) -> None:
        self.num_stages = num_stages
        self.half = num_stages // 2
        self.depth = min(stage, num_stages - 1 - stage)  # 0 at the ends
        self.flipped = stage >= self.half
        self.each_way = num_micro // 2
        self.done = {(kind, way): 0 for kind in (F, B) for way in (0, 1)}
        self.put_off: list[Row] = []
        self.work: list[Row] = []

    def row(self) -> list[Row]:
        outer = self.half - self.depth - 1  # stages between this one and the middle
        self._forwards(0, 2 * outer)
        for _ in range(self.depth + 1):
            self._forwards(0)
            self._forwards(1)
        for _ in range(outer):
            self._backward(1, late=True)
            self._weight()
            self._forwards(1)
        self._steady(self.each_way - self.num_stages + self.depth + 1, outer == 0)
        for _ in range(outer):
            self._backward(1)
            self._together(1, 0)
        self._last_backwards()
        for _ in range(outer):
            self._weight()
            self._backward(0, late=True)
        for _ in range(self.depth + 1):
            self._weight()
        return self.work

    def _steady(self, num_turns: int, middle: bool) -> None:
        for turn in range(num_turns):
            if turn == 0 and middle:  # apart, they let the other way start sooner
                self._forwards(0)
                self._backward(1)
            else:
                self._together(0, 1)
            self._together(1, 0)

    def _last_backwards(self) -> None:
        """Weight gradients are put off in the second half, so that they fill the drain."""
        num, late = self.depth + 1, False
        for turn in range(num):
            late = late or (turn == num // 2 and self.depth % 2 == 1)
            self._backward(1, late=late)
            late = late or (turn == num // 2 and self.depth % 2 == 0)
            self._backward(0, late=late)

    def _next(self, kind: int, way: int) -> tuple[int, int]:
        """Micro-batch and chunk of the next forward or backward of a way."""
        count = self.done[kind, way]
        self.done[kind, way] += 1
        chunk = way ^ self.flipped
        return chunk * self.each_way + count, chunk

    def _forwards(self, way: int, count: int = 1) -> None:
        self.work += [(F, *self._next(F, way), False) for _ in range(count)]

    def _backward(self, way: int, *, late: bool = False) -> None:
        micro, chunk = self._next(B, way)
        self.work.append((B if late else FULL, micro, chunk, False))
        if late:
            self.put_off.append((W, micro, chunk, False))

    def _together(self, forward: int, backward: int) -> None:
        self.work += [(F, *self._next(F, forward), True), (FULL, *self._next(B, backward), False)]

    def _weight(self) -> None:
        self.work.append(self.put_off.pop(0))
