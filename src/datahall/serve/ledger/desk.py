"""The books as whoever asks about them opens them: while a gateway runs, and while none does."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import time_ns
from typing import NamedTuple

from datahall.serve.ledger.disk.recovery import recover
from datahall.serve.ledger.disk.store import Store
from datahall.serve.ledger.folder import Folder, usual_folder


class Desk(NamedTuple):
    """The tables, what secrets are kept under, and the moment at which they are looked at."""

    store: Store
    pepper: bytes
    now_ns: int
    is_running: bool  # a gateway writes here


@contextmanager
def desk(state: str) -> Iterator[Desk]:
    """Open the books of a folder; what a gateway that was killed has left is brought into them first."""
    folder = Folder(Path(state).expanduser() if state else usual_folder())
    with folder.written():
        store = folder.store()
        try:
            pepper, now_ns, is_held = folder.pepper(store), time_ns(), folder.hold(is_brief=True)
            if is_held:
                recover(folder, store, now_ns)
            yield Desk(store, pepper, now_ns, not is_held)
        finally:
            store.close()
            folder.let_go()
