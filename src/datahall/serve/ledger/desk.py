"""The books as whoever asks about them opens them: while a gateway runs, and while none does."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import time_ns
from typing import NamedTuple

from datahall.errors import ServingError
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
def desk(state: str, *, may_be_new: bool = False) -> Iterator[Desk]:
    """Open the books of a folder, which is made where it may be new.

    What a gateway that was killed has left is brought into them first.
    """
    path = Path(state).expanduser() if state else usual_folder()
    if state and not may_be_new and not path.exists():
        raise ServingError(
            f"there is no state of a gateway in {path}",
            field="state",
            hint="the folder that `datahall serve` keeps it in; `datahall gateway keys create` makes one",
        )
    folder = Folder(path)
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
