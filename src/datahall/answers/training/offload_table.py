"""What a layout keeps outside its chips, and whether the way there is wide enough."""

from __future__ import annotations

from datahall.answer import Cell, Column, Table
from datahall.cluster.host import Host
from datahall.training.memory.offload import Line


def offload_table(lines: tuple[Line, ...], host: Host) -> tuple[Table, ...]:
    """One row for each part that was moved out; none where nothing was."""
    if not lines:
        return ()
    rows: list[tuple[Cell, ...]] = [
        (
            f"{line.what} on {line.tier}",
            line.held_bytes,
            line.moved_bytes,
            line.needed_bytes_per_s,
            line.there_bytes_per_s,
            line.exposed_s,
            _verdict(line),
        )
        for line in lines
    ]
    where = f"a chip's share of {host.title}" if host.title else "no server of the catalogue holds this chip"
    return (
        Table(
            title="outside the chip",
            columns=(
                Column("what"),
                Column("held", "bytes"),
                Column("moved a step", "bytes"),
                Column("needed", "bytes_per_s"),
                Column("there", "bytes_per_s"),
                Column("exposed", "s"),
                Column("verdict"),
            ),
            rows=tuple(rows),
            note=f"{where}; needed is what would hide all of it behind the kernels it runs beside",
        ),
    )


def _verdict(line: Line) -> str:
    if not line.fits:
        return f"more than the {line.tier} has"
    return "keeps up" if line.keeps_up else "does not keep up"
