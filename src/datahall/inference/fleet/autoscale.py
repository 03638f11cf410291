"""Autoscaling: how many replicas should be there, asked at intervals, with a cold start for each new one."""

from __future__ import annotations

from math import ceil

import msgspec

from datahall.scenario.sections.fleet import REPLICA_REQUESTS, Router

USUAL = Router()  # what is so where nobody says otherwise


class Autoscaling(msgspec.Struct, frozen=True, kw_only=True):
    """The rule of a horizontal autoscaler: replicas = requests in the system / target, rounded up, between two limits.

    It grows at once and shrinks only when the lower number has been enough for `patience_s`.
    """

    target: float = REPLICA_REQUESTS  # requests in the system for each replica
    interval_s: float = USUAL.interval_s
    cold_start_s: float = USUAL.cold_start_s  # from the decision until the replica takes requests
    patience_s: float = USUAL.patience_s
    least: int
    most: int


def wanted_replicas(rule: Autoscaling, num_requests: int) -> int:
    """Replicas for so many requests in the system.

    >>> wanted_replicas(Autoscaling(target=10.0, least=1, most=8), 45)
    5
    """
    return min(rule.most, max(rule.least, ceil(num_requests / rule.target)))


class Scaler:
    """The decisions of one run: what is wanted now, and since when less would do."""

    def __init__(self, rule: Autoscaling) -> None:
        self.rule = rule
        self._recent: list[tuple[float, int]] = []

    def decide(self, now_s: float, num_requests: int) -> int:
        """The number of replicas that should be there: the most that was wanted in the last `patience_s`."""
        self._recent.append((now_s, wanted_replicas(self.rule, num_requests)))
        self._recent = [(at, num) for at, num in self._recent if at >= now_s - self.rule.patience_s]
        return max(num for _, num in self._recent)
