"""The ledger on the disk: SQLite in WAL mode, one transaction a group commit.

One process writes usage; any may write keys.  A commit is on the disk when it returns (`synchronous=full`).
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import msgspec

from datahall.errors import ServingError
from datahall.serve.ledger.disk.batch import COLUMNS, Batch
from datahall.serve.ledger.disk.journal import Position, Reserved
from datahall.serve.ledger.disk.migrations import migrate
from datahall.serve.ledger.key import Key, Limits
from datahall.serve.ledger.period import HOUR_NS, hour_of

BUSY_S = 5.0  # that whoever writes a key waits for a group commit
_KEYS = "id, name, customer, shown, digest, models, routes, limits, created_ns, expires_ns, revoked_ns"
_ADD = (
    f"insert into usage (hour, key, model, outcome, {', '.join(COLUMNS)}) values ({', '.join('?' * 13)}) "
    f"on conflict do update set {', '.join(f'{name} = {name} + excluded.{name}' for name in COLUMNS)}"
)


class Total(msgspec.Struct, frozen=True, kw_only=True):
    """What a key used of a model with one outcome, in a span of time."""

    key: int
    model: str
    outcome: str
    requests: int
    prompt: int
    cached: int
    completion: int
    nano_usd: int
    wasted_nano_usd: int
    saved_prompt: int
    saved_completion: int
    saved_nano_usd: int


class Store:
    """The tables, and what is asked of them."""

    def __init__(self, path: Path, busy_s: float = BUSY_S) -> None:
        self.path = path
        try:
            self._database = sqlite3.connect(
                path, timeout=busy_s, isolation_level=None, check_same_thread=False
            )
            self._database.execute("pragma journal_mode = wal")
            self._database.execute("pragma synchronous = full")
            migrate(self._database, str(path))
        except sqlite3.Error as error:
            raise ServingError(
                f"the ledger {path} cannot be opened: {error}",
                hint="space on its disk, another folder for the state, or the ledger from a copy",
            ) from error
        self._seen = self._data_version()

    def close(self) -> None:
        """Let go of the database."""
        self._database.close()

    def wait_at_most(self, busy_s: float) -> None:
        """How long a lock of another process is waited for."""
        self._database.execute(f"pragma busy_timeout = {int(busy_s * 1000)}")

    # usage

    def write(self, batch: Batch, found_ns: int = 0) -> None:
        """One group commit: all of a batch, or nothing."""
        with _Transaction(self._database) as database:
            database.executemany(_ADD, ((*row, *sums) for row, sums in batch.sums.items()))
            database.executemany("delete from open where request = ?", ((one,) for one in batch.closed))
            database.executemany(
                "insert into open values (?, ?)",
                ((one.request, msgspec.msgpack.encode(one)) for one in batch.opened.values()),
            )
            database.executemany(
                "insert into unsettled values (?, ?, ?, ?, ?, ?)",
                (
                    (one.request, one.key, one.model, one.admitted_ns, one.nano_usd, found_ns)
                    for one in batch.unsettled
                ),
            )
            position = batch.position
            database.execute("update mark set segment = ?, offset = ?", (position.segment, position.offset))

    def position(self) -> Position:
        """Where in the journal all before is in the tables."""
        return Position(*self._database.execute("select segment, offset from mark").fetchone())

    def begin(self) -> int:
        """How many times a ledger has been opened, with this one."""
        (count,) = self._database.execute("update mark set starts = starts + 1 returning starts").fetchone()
        return int(count)

    def open_requests(self) -> dict[int, Reserved]:
        """Requests that were let in and not settled."""
        rows = self._database.execute("select record from open")
        found = (msgspec.msgpack.decode(record, type=Reserved) for (record,) in rows)
        return {one.request: one for one in found}

    def spent_nano_usd(self, start_ns: int) -> dict[int, int]:
        """What each key was charged from a moment on."""
        query = "select key, sum(nano_usd) from usage where hour >= ? group by key"
        return dict(self._database.execute(query, (hour_of(start_ns),)))

    def totals(self, start_ns: int, end_ns: int) -> Iterator[Total]:
        """What was used from a moment to before another, both on whole hours."""
        sums = ", ".join(f"sum({name})" for name in COLUMNS)
        rows = self._database.execute(
            f"select key, model, outcome, {sums} from usage where hour >= ? and hour < ? "
            "group by key, model, outcome order by key, model, outcome",
            (hour_of(start_ns), hour_of(end_ns + HOUR_NS - 1)),
        )
        names = ("key", "model", "outcome", *COLUMNS)
        return (Total(**dict(zip(names, row, strict=True))) for row in rows)

    # keys

    def add(self, key: Key) -> Key:
        """Write a new key; it has its number then."""
        fields = msgspec.structs.asdict(key) | {
            "models": " ".join(key.models),
            "routes": " ".join(key.routes),
            "limits": _written(key.limits),
        }
        names = [name for name in _KEYS.split(", ") if name != "id"]
        with _Transaction(self._database) as database:
            (number,) = database.execute(
                f"insert into keys ({', '.join(names)}, change) values ({', '.join('?' * len(names))}, 0) "
                "returning id",
                [fields[name] for name in names],
            ).fetchone()
            _changed(database, number)
        return msgspec.structs.replace(key, id=number)

    def change(self, key: int, **columns: int | str | bytes) -> None:
        """Write some columns of a key anew."""
        names = ", ".join(f"{name} = ?" for name in columns)
        with _Transaction(self._database) as database:
            database.execute(f"update keys set {names} where id = ?", (*columns.values(), key))
            _changed(database, key)

    def limit_customer(self, name: str, limits: Limits) -> None:
        """Write the limits that all keys of a customer share."""
        with _Transaction(self._database) as database:
            database.execute("update mark set change = change + 1")
            database.execute(
                "insert into customers values (?, ?, (select change from mark)) "
                "on conflict do update set limits = excluded.limits, change = excluded.change",
                (name, _written(limits)),
            )

    def customers(self, after: int = -1) -> dict[str, Limits]:
        """Limits of customers that were written after a change."""
        rows = self._database.execute(
            "select name, limits from customers where change > ? order by name", (after,)
        )
        return {name: msgspec.json.decode(limits, type=Limits) for name, limits in rows}

    def keys(self, after: int = -1) -> tuple[list[Key], int]:
        """Keys that were written after a change, and the number of the last change."""
        rows = self._database.execute(
            f"select {_KEYS} from keys where change > ? order by id", (after,)
        ).fetchall()
        (last,) = self._database.execute("select change from mark").fetchone()
        return [_key(*row) for row in rows], last

    def is_changed(self) -> bool:
        """Whether another process has written since this was asked last."""
        version = self._data_version()
        changed, self._seen = version != self._seen, version
        return changed

    def pepper_mark(self, mark: bytes) -> bytes:
        """What tells the pepper that secrets are kept under; the first to say it has it kept."""
        with _Transaction(self._database) as database:
            database.execute("update mark set pepper = ? where pepper is null", (mark,))
        return bytes(self._database.execute("select pepper from mark").fetchone()[0])

    def _data_version(self) -> int:
        return int(self._database.execute("pragma data_version").fetchone()[0])


class _Transaction:
    """All or nothing; what another process writes is waited for at the beginning."""

    def __init__(self, database: sqlite3.Connection) -> None:
        self._database = database

    def __enter__(self) -> sqlite3.Connection:
        self._database.execute("begin immediate")
        return self._database

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            try:
                self._database.execute("commit")
            except sqlite3.Error:
                self._back()
                raise
        else:
            self._back()

    def _back(self) -> None:
        if self._database.in_transaction:
            self._database.execute("rollback")


def _written(limits: Limits) -> str:
    return msgspec.json.encode(limits).decode()


def _changed(database: sqlite3.Connection, key: int) -> None:
    """Number a change, so that whoever has read the keys before reads this one again."""
    database.execute("update mark set change = change + 1")
    database.execute("update keys set change = (select change from mark) where id = ?", (key,))


def _key(
    number: int, name: str, customer: str, shown: str, digest: bytes, models: str, routes: str, limits: str,
    created_ns: int, expires_ns: int, revoked_ns: int,
) -> Key:  # fmt: skip
    return Key(
        id=number,
        name=name,
        customer=customer,
        shown=shown,
        digest=digest,
        models=tuple(models.split()),
        routes=tuple(routes.split()),
        limits=msgspec.json.decode(limits, type=Limits),
        created_ns=created_ns,
        expires_ns=expires_ns,
        revoked_ns=revoked_ns,
    )
