"""How often anything may be asked twice: a share of all requests, so that a failing upstream is not buried.

Each model has a budget of its own, so that one that fails takes no retries from others.
"""

from __future__ import annotations

SHARE = 0.08  # of requests; with what is there at the beginning, under a tenth of a few hundred
MOST = 5.0  # that is saved up


class RetryBudget:
    """Every request pays in a share of a retry; a retry or a hedge takes a whole one."""

    __slots__ = ("_left", "num_refused", "num_spent")

    def __init__(self) -> None:
        self._left = MOST
        self.num_spent = 0
        self.num_refused = 0

    def pay(self) -> None:
        self._left = min(MOST, self._left + SHARE)

    def take(self) -> bool:
        """Whether something may be asked again."""
        if self._left < 1:
            self.num_refused += 1
            return False
        self._left -= 1
        self.num_spent += 1
        return True


class RetryBudgets:
    """The budget of each model, by its name, which outlives a change of the file."""

    __slots__ = ("_of",)

    def __init__(self) -> None:
        self._of: dict[str, RetryBudget] = {}

    def of(self, model: str) -> RetryBudget:
        found = self._of.get(model)
        if found is None:
            found = self._of[model] = RetryBudget()
        return found

    @property
    def num_spent(self) -> int:
        return sum(budget.num_spent for budget in self._of.values())

    @property
    def num_refused(self) -> int:
        return sum(budget.num_refused for budget in self._of.values())
