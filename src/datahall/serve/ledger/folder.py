"""Where a gateway keeps its state: ledger, journal and pepper, in a folder that one gateway holds at a time."""

from __future__ import annotations

import fcntl
import hmac
import os
import secrets
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from time import monotonic, sleep

from datahall.errors import ServingError
from datahall.serve.ledger.disk.store import Store

PEPPER_BYTES = 32
LEDGER, PEPPER, LOCK, DOOR = "ledger.sqlite", "pepper", "lock", "door"
DOOR_S = 10.0  # that whoever comes to the books waits for who looks at them
LOOK_S = 0.01


def usual_folder() -> Path:
    """Where state is kept if nobody says."""
    home = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(home) / "datahall"


class Folder:
    """A folder of state; readable by its owner alone."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock: int | None = None
        self._door: int | None = None
        try:
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise ServingError(
                f"the folder of the gateway's state cannot be made: {error}", field="state"
            ) from error

    def hold(self, *, is_brief: bool = False) -> bool:
        """Be the one who writes usage here; whether that is so.

        Who is it for a moment stands in the door meanwhile, and whoever comes waits there: that the folder is held
        then means that a gateway runs.
        """
        door = self._locked(DOOR, DOOR_S)
        if door is None:
            return False
        self._lock = self._locked(LOCK)
        if is_brief and self._lock is not None:
            self._door = door
        else:
            os.close(door)
        return self._lock is not None

    def let_go(self) -> None:
        """Let another write."""
        for file in (self._lock, self._door):
            if file is not None:
                os.close(file)
        self._lock = self._door = None

    @contextmanager
    def written(self) -> Iterator[None]:
        """What the disk does not let be done is said as the trouble of this folder."""
        try:
            yield
        except (OSError, sqlite3.Error) as error:
            reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
            raise ServingError(
                f"the gateway's state in {self.path} cannot be written: {reason}",
                field="state",
                hint="make space there, or name another folder",
            ) from error

    def _locked(self, name: str, wait_s: float = 0.0) -> int | None:
        """A file that nobody else has locked, within a time."""
        file = os.open(self.path / name, os.O_RDWR | os.O_CREAT, 0o600)
        latest_s = monotonic() + wait_s
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if monotonic() >= latest_s:
                    os.close(file)
                    return None
                sleep(LOOK_S)
            else:
                return file

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
            try:
                with os.fdopen(file, "wb") as new:
                    new.write(pepper)
            except OSError:
                path.unlink()
                raise
        mark = hmac.digest(pepper, b"datahall ledger", "sha256")
        if len(pepper) < PEPPER_BYTES or store.pepper_mark(mark) != mark:
            raise ServingError(
                f"{path} is not the pepper that the keys of {self.path / LEDGER} were made under",
                hint="put the file back from a copy; without it no key can be known again, and new ones are needed",
            )
        return pepper
