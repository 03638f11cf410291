"""Where a gateway keeps its state: ledger, journal and pepper, in a folder that one gateway holds at a time."""

from __future__ import annotations

import fcntl
import hmac
import os
import secrets
from contextlib import suppress
from pathlib import Path

from datahall.errors import ServingError
from datahall.serve.ledger.disk.store import Store

PEPPER_BYTES = 32
LEDGER, PEPPER, LOCK = "ledger.sqlite", "pepper", "lock"


def usual_folder() -> Path:
    """Where state is kept if nobody says."""
    home = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(home) / "datahall"


class Folder:
    """A folder of state; readable by its owner alone."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock: int | None = None
        try:
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise ServingError(
                f"the folder of the gateway's state cannot be made: {error}", field="state"
            ) from error

    def hold(self) -> bool:
        """Be the one who writes usage here; whether that is so."""
        file = os.open(self.path / LOCK, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(file)
            return False
        self._lock = file
        return True

    def let_go(self) -> None:
        """Let another write."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def store(self) -> Store:
        """The tables.

        A file that is there is opened by SQLite alone: to close it by hand would take the locks of every other
        connection of this process, and whoever writes next from elsewhere would do so unseen.
        """
        path = self.path / LEDGER
        with suppress(FileExistsError):
            os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        return Store(path)

    def pepper(self, store: Store) -> bytes:
        """What secrets are hashed under: a file beside the ledger, made when it is first asked for."""
        path = self.path / PEPPER
        try:
            file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except FileExistsError:
            pepper = path.read_bytes()
        else:
            pepper = secrets.token_bytes(PEPPER_BYTES)
            with os.fdopen(file, "wb") as new:
                new.write(pepper)
        mark = hmac.digest(pepper, b"datahall ledger", "sha256")
        if len(pepper) < PEPPER_BYTES or store.pepper_mark(mark) != mark:
            raise ServingError(
                f"{path} is not the pepper that the keys of {self.path / LEDGER} were made under",
                hint="put the file back from a copy; without it no key can be known again, and new ones are needed",
            )
        return pepper
