"""What may go wrong with a request to another server."""

from __future__ import annotations


class Failure(Exception):
    """A request that has no whole answer."""


class CannotConnect(Failure):
    """Nobody listens there, or the handshake failed: nothing was sent."""


class TimedOut(Failure):
    """A step took longer than was allowed."""


class Interrupted(Failure):
    """The connection broke, or what came is not HTTP."""


class Refused(Exception):
    """A request that the server does not take, with the status that says so; the connection is closed."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
