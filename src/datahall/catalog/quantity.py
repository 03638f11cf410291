"""Every number of an entry under the name a person would use: "memory", "peak.fp8", "level.l2.capacity"."""

from __future__ import annotations

from datahall.breakdown import Source
from datahall.catalog.entries import chip as chips
from datahall.catalog.entries import server as servers
from datahall.catalog.entries.chip import Chip
from datahall.catalog.entries.model import Model
from datahall.catalog.entries.network import link as links
from datahall.catalog.entries.network.link import Link
from datahall.catalog.entries.server import Server
from datahall.catalog.fact import Fact, Field
from datahall.catalog.number_formats import PEAK_FORMATS


def quantities(entry: Chip | Link | Server | Model) -> dict[str, Fact]:
    """Return the facts of an entry, those of a chip's memory levels among them."""
    if isinstance(entry, Chip):
        found = _keyed(chips.FIELDS, entry.facts)
        found |= {name: fact for name, fact in entry.facts.items() if name.partition(".")[2] in PEAK_FORMATS}
        for level in entry.levels:
            found |= {
                f"level.{level.name}.{key}": fact
                for key, fact in _keyed(chips.LEVEL_FIELDS, level.facts).items()
            }
        return found
    if isinstance(entry, Link):
        return _keyed(links.FIELDS, entry.facts)
    if isinstance(entry, Server):
        return _keyed(servers.FIELDS, entry.facts)
    return dict(entry.facts)


def names(entry: Chip | Link | Server | Model) -> set[str]:
    """Return every quantity that such an entry can have, known or not."""
    if isinstance(entry, Chip):
        peaks = {
            f"{table}.{precision}"
            for table in ("peak", "sparse_peak", "measured_peak")
            for precision in PEAK_FORMATS
        }
        levels = {
            f"level.{level.name}.{key}" for level in entry.levels for key in _numbers(chips.LEVEL_FIELDS)
        }
        return _numbers(chips.FIELDS) | peaks | levels
    if isinstance(entry, Link):
        return _numbers(links.FIELDS)
    return _numbers(servers.FIELDS) if isinstance(entry, Server) else set(entry.facts)


def scale_up_total(server: Server, chip: Chip) -> Fact | None:
    """The scale-up bandwidth of all chips of a server, one way."""
    each = chip.facts.get("scale_up_bytes_per_s")
    if each is None:
        return None
    source = Source(each.source.title, each.source.date, "derived")
    note = f"{server.num_chips:,} chips × {each.shown}"
    return Fact(
        "scale-up bandwidth of all chips, one way", server.num_chips * each.value, each.unit, source, note
    )


def _keyed(fields: tuple[Field, ...], facts: dict[str, Fact]) -> dict[str, Fact]:
    return {field.key: facts[field.attribute] for field in fields if field.attribute in facts}


def _numbers(fields: tuple[Field, ...]) -> set[str]:
    return {field.key for field in fields if field.form in {"quantity", "count"}}
