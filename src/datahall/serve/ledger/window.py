"""How much of something happened in the last minute, so that no minute ever holds more than a limit.

A ring of seconds: what is asked now counts with the sixty seconds before it, so that sixty seconds that begin anywhere
hold no more than the limit.  What was reserved is given back to the second it was taken in.
"""

from __future__ import annotations

SECONDS = 61  # sixty whole ones, and the one that has begun


class Window:
    """Amounts of the last minute, by the second."""

    __slots__ = ("_amounts", "_second", "limit", "total", "turn")

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.total = 0
        self.turn = 0  # of the ring; counts on where the clock is set back
        self._second = 0
        self._amounts = [0] * SECONDS

    def roll(self, second: int) -> None:
        """Forget what is older than a minute; to a clock that is set back, no time has passed."""
        passed = second - self._second
        if passed <= 0:
            self._second = second
            return
        self._second = second
        amounts = self._amounts
        if passed >= SECONDS:
            self.turn += passed
            if self.total:
                self._amounts = [0] * SECONDS
                self.total = 0
            return
        for _ in range(passed):
            self.turn += 1
            place = self.turn % SECONDS
            self.total -= amounts[place]
            amounts[place] = 0

    def take(self, amount: int) -> int:
        """Count an amount now; the turn says when it was."""
        self._amounts[self.turn % SECONDS] += amount
        self.total += amount
        return self.turn

    def change(self, turn: int, amount: int) -> None:
        """Count more, or less, in a turn; what is older than a minute is past."""
        if self.turn - turn < SECONDS:
            self._amounts[turn % SECONDS] += amount
            self.total += amount

    @property
    def left(self) -> int:
        """What may still be taken now."""
        return max(0, self.limit - self.total)

    @property
    def empty_s(self) -> int:
        """Seconds until all that is counted is past."""
        if self.total:
            for age in range(SECONDS):
                if self._amounts[(self.turn - age) % SECONDS]:
                    return SECONDS - age
        return 0

    def wait_s(self, amount: int) -> int | None:
        """Seconds until an amount fits; None where it never will."""
        excess = self.total + amount - self.limit
        if excess <= 0:
            return 0
        if amount > self.limit:
            return None
        for age in range(SECONDS - 1, -1, -1):
            excess -= self._amounts[(self.turn - age) % SECONDS]
            if excess <= 0:
                return SECONDS - age
        return SECONDS
