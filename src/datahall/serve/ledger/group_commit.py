"""The thread that writes the ledger to the disk twenty times a second, so that whoever answers requests never waits."""

from __future__ import annotations

from collections.abc import Callable
from threading import Event, Thread
from time import time_ns

from datahall.serve.ledger.ledger import Ledger

EVERY_S = 0.05  # what a loss of power takes at most


class GroupCommit:
    """Commits of a ledger, one after another, until it is stopped."""

    def __init__(self, ledger: Ledger, clock: Callable[[], int] = time_ns) -> None:
        self._ledger = ledger
        self._clock = clock
        self._stop = Event()
        self._thread = Thread(target=self._run, name="ledger", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Write what is left and let go of the ledger."""
        self._stop.set()
        self._thread.join()
        self._ledger.close(self._clock())

    def _run(self) -> None:
        while not self._stop.wait(EVERY_S):
            self._ledger.commit(self._clock())
