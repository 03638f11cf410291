"""Standard output that may be closed, full, or read by nobody any more."""

from __future__ import annotations

import errno
import io
import os
import sys

from datahall.errors import OutputError


class Closed(io.TextIOBase):
    """Standard output that is not there: to write to it is an error, as for every other command."""

    def write(self, text: str) -> int:
        raise OSError(errno.EBADF, f"it is closed, and {len(text):,} characters are for it")

    @property
    def buffer(self) -> Closed:
        raise OSError(errno.EBADF, "it is closed")


def put(data: str | bytes) -> None:
    """Write data to standard output; where nobody reads it any more, the answer and its exit code stay."""
    try:
        if isinstance(data, str):
            sys.stdout.write(data)
        else:
            sys.stdout.buffer.write(data)
        sys.stdout.flush()
    except BrokenPipeError:
        silence()
    except OSError as error:
        raise OutputError(f"standard output could not be written: {error.strerror or error}") from error


def silence() -> None:
    """Nobody reads standard output any more; let the interpreter's last flush go nowhere."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
