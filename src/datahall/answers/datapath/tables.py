"""Tables of a data path: stores side by side, limits of the best, changes, checkpoints, cold starts."""

from __future__ import annotations

from datahall.answer import Cell, Column, Table
from datahall.answers.datapath.words import BINDS
from datahall.counted import counted
from datahall.datapath.asked import Asked
from datahall.datapath.verdict import Verdict


def by_storage(asked: Asked, rows: tuple[Verdict, ...], chosen: Verdict) -> Table:
    """What each store delivers."""
    columns = (
        Column("storage"),
        Column("utilisation", "fraction"),
        Column("comes through", "bytes_per_s", "available_bytes_per_s"),
        Column("chips it feeds", "count", "num_chips_fed"),
        Column("price of a month", "usd", "month_usd"),
        Column("what binds", "", "binding"),
        Column("what mends it", "", "mended_by"),
    )
    cells = tuple(_row(row) for row in rows)
    title = f"storage, for {asked.name}"
    return Table(title=title, columns=columns, rows=cells, marked=rows.index(chosen))


def _row(row: Verdict) -> tuple[Cell, ...]:
    found, mends = row.supply, row.mended_by
    return (
        row.store.storage.name,
        found.utilisation_fraction,
        found.available_bytes_per_s,
        row.num_chips_fed,
        row.usd_per_month,
        found.binding,
        mends.what if mends else None,
    )


def limit_table(chosen: Verdict) -> tuple[Table, ...]:
    """What each part of the way lets through, from the store that does best."""
    found = chosen.supply
    rows = tuple(
        (name, BINDS[name], found.limits_bytes_per_s[name], margin) for name, margin in found.margins.items()
    )
    columns = (
        Column("part"),
        Column("which is"),
        Column("lets through", "bytes_per_s", "limit_bytes_per_s"),
        Column("of what is needed", "ratio", "margin_ratio"),
    )
    title = f"the way from {chosen.store.storage.name}"
    return (Table(title=title, columns=columns, rows=rows, marked=0),) if rows else ()


def remedy_table(rows: tuple[Verdict, ...]) -> tuple[Table, ...]:
    """Changes that help, cheapest first."""
    cells = tuple(
        (row.store.storage.name, one.what, one.costs, one.utilisation_fraction, one.gain_fraction)
        for row in rows
        for one in row.remedies
    )
    columns = (
        Column("storage"),
        Column("change"),
        Column("costs"),
        Column("utilisation", "fraction"),
        Column("gain", "fraction"),
    )
    return (Table(title="what mends it", columns=columns, rows=cells),) if cells else ()


def checkpoint_table(asked: Asked, rows: tuple[Verdict, ...]) -> tuple[Table, ...]:
    """The burst of a checkpoint against each store."""
    if not asked.checkpoint_bytes:
        return ()
    cells = tuple(
        (row.store.storage.name, asked.checkpoint_bytes, row.drain_s, row.busy_fraction, row.written_bytes_per_s,
         row.written_over_read_ratio)
        for row in rows
    )  # fmt: skip
    columns = (
        Column("storage"),
        Column("checkpoint", "bytes"),
        Column("written in", "s", "drain_s"),
        Column("of its time", "fraction", "busy_fraction"),
        Column("on average", "bytes_per_s", "written_bytes_per_s"),
        Column("over what is read", "ratio", "written_over_read_ratio"),
    )
    return (Table(title="checkpoints on the same storage", columns=columns, rows=cells),)


def load_table(asked: Asked, rows: tuple[Verdict, ...]) -> tuple[Table, ...]:
    """Loading weights at a cold start."""
    cells = tuple(
        (row.store.storage.name, row.load.load_s, row.load.binding) for row in rows if row.load is not None
    )
    columns = (
        Column("storage"),
        Column("weights loaded in", "s", "load_s"),
        Column("what binds", "", "load_binding"),
    )
    title = f"weights of {counted(asked.num_replicas, 'replica')} at once"
    return (Table(title=title, columns=columns, rows=cells),) if cells else ()
