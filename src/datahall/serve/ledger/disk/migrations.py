"""The tables of the ledger, and how each form of them became the next: forward only, one transaction a step.

A step that has been released is never changed; what it left wanting is the next step.
"""

from __future__ import annotations

import sqlite3

from datahall.errors import ServingError

STEPS: tuple[tuple[str, ...], ...] = (
    (
        """create table keys (
            id integer primary key,
            name text not null unique,
            customer text not null,
            shown text not null,
            digest blob not null unique,
            models text not null,
            routes text not null,
            limits text not null,
            created_ns integer not null,
            expires_ns integer not null,
            revoked_ns integer not null,
            change integer not null
        ) strict""",
        # what was used, by the hour of admission: bills, budgets and lists are sums over it
        """create table usage (
            hour integer not null,
            key integer not null,
            model text not null,
            outcome text not null,
            requests integer not null,
            prompt integer not null,
            cached integer not null,
            completion integer not null,
            nano_usd integer not null,
            wasted_nano_usd integer not null,
            saved_prompt integer not null,
            saved_completion integer not null,
            saved_nano_usd integer not null,
            primary key (key, hour, model, outcome)
        ) strict, without rowid""",
        # requests that are let in and not settled
        """create table open (
            request integer primary key,
            record blob not null
        ) strict""",
        # requests that were charged what was reserved, since whoever answered them was killed
        """create table unsettled (
            request integer primary key,
            key integer not null,
            model text not null,
            admitted_ns integer not null,
            nano_usd integer not null,
            found_ns integer not null
        ) strict""",
        # what there is one of: the place in the journal up to which all is here, and how often a ledger was opened
        """create table mark (
            one integer primary key check (one = 1),
            segment integer not null,
            offset integer not null,
            starts integer not null,
            change integer not null,
            pepper blob
        ) strict""",
        "insert into mark values (1, 0, 0, 0, 0, null)",
    ),
    (
        # limits that all keys of a customer share; a customer that has none is known by its keys alone
        """create table customers (
            name text primary key,
            limits text not null,
            change integer not null
        ) strict, without rowid""",
    ),
)


def migrate(database: sqlite3.Connection, path: str, steps: tuple[tuple[str, ...], ...] = STEPS) -> None:
    """Take the tables from the form that they have to the newest."""
    version = _version(database)
    if version > len(steps):
        raise ServingError(
            f"the ledger {path} is of form {version}, and this is a Datahall of form {len(steps)}",
            hint="run the Datahall that wrote it, or a later one",
        )
    for number in range(version + 1, len(steps) + 1):
        database.execute("begin immediate")
        try:
            if _version(database) < number:  # another process may have done it meanwhile
                for statement in steps[number - 1]:
                    database.execute(statement)
                database.execute(f"pragma user_version = {number}")
            database.execute("commit")
        except BaseException:
            if database.in_transaction:  # a full disk has ended it
                database.execute("rollback")
            raise


def _version(database: sqlite3.Connection) -> int:
    found: int = database.execute("pragma user_version").fetchone()[0]
    return found
