"""The kinds of entries that the catalogue has, a row each: where those that ship are, and what reads one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from datahall.catalog.document import Table


class EntryKind(NamedTuple):
    """A kind: `[chip.NAME]` in a file is read by `read_chip` of the module `entries/` names."""

    files: str  # those that ship, below data/; offers ship as a table
    home: str  # module of entries/
    called: str = ""  # what a person calls one, where a file says something else
    listed: bool = False  # whether `datahall catalog` has a list of them
    searched: bool = False  # whether `datahall catalog search` looks through them
    keys: tuple[
        tuple[str, str], ...
    ] = ()  # those that name an entry of another kind; of its own it is used later


KINDS = {
    "chip": EntryKind(
        "chips/*.toml", "chip", listed=True, searched=True, keys=(("scale_up", "link"), ("host", "link"))
    ),
    "link": EntryKind("links.toml", "network.link", listed=True, searched=True),
    "server": EntryKind(
        "servers.toml", "server", listed=True, searched=True,
        keys=(("chip", "chip"), ("scale_up", "link"), ("nic", "link")),
    ),
    "model": EntryKind("models/*.toml", "model_entry", listed=True, searched=True),
    "offer": EntryKind("", "offer", searched=True, keys=(("chip", "chip"),)),
    "switch": EntryKind("fabrics.toml", "network.switch"),
    "cable": EntryKind("fabrics.toml", "network.cable"),
    "reroute": EntryKind("fabrics.toml", "network.reroute"),
    "fabric": EntryKind("fabrics.toml", "network.known_fabric", keys=(("server", "server"), ("switch", "switch"))),
    "transport": EntryKind("transports.toml", "network.transport"),
    "component": EntryKind("failures.toml", "failures"),
    "failures": EntryKind(
        "failures.toml", "failures", called="failure preset", keys=(("chip", "chip"),)
    ),
    "ageing": EntryKind("failures.toml", "failures"),
    "grid": EntryKind("grids.toml", "site.grid"),
    "facility": EntryKind("sites.toml", "site.facility"),
    "cooling": EntryKind("sites.toml", "site.cooling"),
    "buffer": EntryKind("sites.toml", "site.buffer"),
    "storage": EntryKind("storage.toml", "stored.storage", searched=True),
    "dataset": EntryKind("storage.toml", "stored.dataset", searched=True),
    "owner": EntryKind("costs.toml", "bought.owner"),
    "share": EntryKind("costs.toml", "bought.share"),
    "stage": EntryKind("costs.toml", "bought.stage"),
    "training_run": EntryKind(
        "training_runs.toml", "bought.training_run", called="training run",
        keys=(("model", "model"), ("chip", "chip")),
    ),
    "country": EntryKind("countries.toml", "supply.country", searched=True),
    "region": EntryKind(
        "regions.toml", "supply.region", searched=True, keys=(("country", "country"), ("grid", "grid"))
    ),
    "foundry": EntryKind("supply.toml", "supply.foundry", keys=(("chips", "chip"),)),
    "cloud_only": EntryKind(
        "supply.toml", "supply.cloud_only", called="chip of a cloud", keys=(("chips", "chip"),)
    ),
    "lead_time": EntryKind(
        "supply.toml", "supply.lead_time", called="lead time", keys=(("chips", "chip"),)
    ),
    "licence": EntryKind(
        "supply.toml", "supply.licence", keys=(("chips", "chip"), ("countries", "country"))
    ),
}  # fmt: skip


def references(kind: str, table: Table) -> Iterator[tuple[tuple[str, ...], str, str]]:
    """The keys, the kind and the name of every other entry that an entry of a kind names."""
    for key, target in KINDS[kind].keys:
        named = table.get(key)
        for name in named if isinstance(named, list) else [named]:
            if isinstance(name, str):
                yield (key,), target, name
    causes = table.get("causes") if kind == "failures" else None
    for cause, row in causes.items() if isinstance(causes, dict) else ():
        if isinstance(row, dict) and isinstance(name := row.get("component"), str):
            yield ("causes", cause, "component"), "component", name
