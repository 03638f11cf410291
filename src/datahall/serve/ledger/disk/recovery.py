"""What a gateway that was killed had let in: settled if it said so in its journal, else charged what was reserved."""

from __future__ import annotations

from datahall.serve.ledger.disk.batch import UNSETTLED, Batch
from datahall.serve.ledger.disk.journal import Position, Settled, records, segments
from datahall.serve.ledger.disk.store import Store
from datahall.serve.ledger.folder import Folder


def recover(folder: Folder, store: Store, now_ns: int) -> int:
    """Bring the journal of whoever wrote last into the tables, in one transaction; return the first free segment.

    A request without an end costs what was reserved and is marked: it may have been answered, and nobody can say.
    """
    there = segments(folder.path)
    start = store.position()
    first_free = max([start.segment, *(number for _, number in there)]) + 1
    batch = Batch()
    batch.add(records(folder.path, start))
    still_open = store.open_requests() | batch.opened
    for request in batch.closed:
        still_open.pop(request, None)
    for one in still_open.values():
        charged = Settled(
            one.request, one.key, one.model, one.admitted_ns, UNSETTLED, one.usage, one.nano_usd
        )
        batch.settle(charged)
        batch.unsettled.append(charged)
    batch.position = Position(first_free, 0)
    store.write(batch, now_ns)
    for path, _ in there:
        path.unlink(missing_ok=True)
    return first_free
