"""The catalogue: shipped facts, and the user's own on top of them.

Layers, each overriding entries of the same name in the ones before it: the data shipped here, the user's
folder (`$XDG_DATA_HOME/datahall/catalog`), the folders in `DATAHALL_CATALOG`, and folders given to
`Catalog(extra=…)`.  Each kind is read the first time it is asked for.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from functools import cache, cached_property
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import msgspec

from datahall.breakdown import Source
from datahall.catalog import index
from datahall.catalog.document import Document, Table
from datahall.catalog.entries.cable import Cable, read_cable
from datahall.catalog.entries.chip import Chip, read_chip
from datahall.catalog.entries.known_fabric import KnownFabric, read_known_fabric
from datahall.catalog.entries.link import Link, read_link
from datahall.catalog.entries.offer import Offer, read_offer, read_offers
from datahall.catalog.entries.reroute import Reroute, read_reroute
from datahall.catalog.entries.server import Server, read_server
from datahall.catalog.entries.switch import Switch, read_switch
from datahall.catalog.fact import Entry
from datahall.catalog.index import Index, Named, Reader
from datahall.errors import CatalogError, DocumentError, Problem, UnknownNameError, nearest

if TYPE_CHECKING:
    from datahall.catalog.entries.model import Model

SHIPPED = Path(__file__).parent / "data"
_SHIPPED_FILES = {
    "chip": "chips/*.toml",
    "link": "links.toml",
    "server": "servers.toml",
    "model": "models/*.toml",
    "switch": "fabrics.toml",
    "cable": "fabrics.toml",
    "reroute": "fabrics.toml",
    "fabric": "fabrics.toml",
}

# keys that name an entry of another kind
_REFERENCES = {
    "chip": (("scale_up", "link"), ("host", "link")),
    "server": (("chip", "chip"), ("scale_up", "link"), ("nic", "link")),
    "offer": (("chip", "chip"),),
    "fabric": (("server", "server"), ("switch", "switch")),
}

T = TypeVar("T", bound=Named)


class Hit(msgspec.Struct, frozen=True):
    """One entry that a search found."""

    kind: str
    name: str
    title: str


def user_folder() -> Path:
    """Return the folder of the user's own entries, which need not exist."""
    data_home = os.environ.get("XDG_DATA_HOME", "")
    return (Path(data_home) if data_home else Path.home() / ".local" / "share") / "datahall" / "catalog"


class Catalog:
    """Chips, links, servers, models, offers and what networks are made of, by name."""

    def __init__(
        self, extra: Iterable[Path | str] = (), *, shipped: Path = SHIPPED, user: bool = True
    ) -> None:
        self._shipped = shipped
        self.layers = (*((user_folder(),) if user else ()), *_named_folders(extra, user))

    def chip(self, name: str) -> Chip:
        """Return a chip by name or alias."""
        return self._chips.get(name)

    def chips(self) -> tuple[Chip, ...]:
        """Every chip."""
        return tuple(self._chips)

    def link(self, name: str) -> Link:
        """Return a link by name or alias."""
        return self._links.get(name)

    def links(self) -> tuple[Link, ...]:
        """Every link."""
        return tuple(self._links)

    def server(self, name: str) -> Server:
        """Return a server, rack, pod or cluster by name or alias."""
        return self._servers.get(name)

    def servers(self) -> tuple[Server, ...]:
        """Every server, rack, pod and cluster."""
        return tuple(self._servers)

    def switch(self, name: str) -> Switch:
        """Return a switch by name or alias."""
        return self._switches.get(name)

    def switches(self) -> tuple[Switch, ...]:
        """Every switch."""
        return tuple(self._switches)

    def cable(self, name: str) -> Cable:
        """Return a cable by name or alias."""
        return self._cables.get(name)

    def cables(self) -> tuple[Cable, ...]:
        """Every cable."""
        return tuple(self._cables)

    def reroute(self, name: str) -> Reroute:
        """Return a way to reroute by name."""
        return self._reroutes.get(name)

    def reroutes(self) -> tuple[Reroute, ...]:
        """Every way to reroute."""
        return tuple(self._reroutes)

    def known_fabric(self, name: str) -> KnownFabric:
        """Return a published fabric by name or alias."""
        return self._known_fabrics.get(name)

    def known_fabrics(self) -> tuple[KnownFabric, ...]:
        """Every published fabric."""
        return tuple(self._known_fabrics)

    def model(self, name: str) -> Model:
        """Return a model by name or alias."""
        return self._models.get(name)

    def models(self) -> tuple[Model, ...]:
        """Every model."""
        return tuple(self._models)

    def offers(self, chip: str = "", kind: str = "") -> tuple[Offer, ...]:
        """Every offer, or those of one chip and kind, cheapest by the hour first; by spot, those with a spot price."""
        found = list(self._offers)
        if kind == "spot":
            found = [offer for offer in found if not isnan(offer.hourly_usd(kind))]
        elif kind:
            found = [offer for offer in found if offer.kind == kind]
        if chip:
            name = self.chip(chip).name
            found = [offer for offer in found if offer.chip and self.chip(offer.chip).name == name]
        return tuple(sorted(found, key=lambda offer: (isnan(offer.hourly_usd(kind)), offer.hourly_usd(kind))))

    def find(self, name: str) -> Chip | Link | Server | Model:
        """Return the chip, link, server or model called `name`, whichever there is first."""
        indexes = (self._chips, self._links, self._servers)
        for entries in indexes:
            if name in entries:
                return entries.get(name)
        if name in self._models:
            return self._models.get(name)
        known = [entry for entries in (*indexes, self._models) for entry in entries.entries]
        raise UnknownNameError("name", name, known, hint="look for it: datahall catalog search")

    def search(self, text: str) -> tuple[Hit, ...]:
        """Return entries of every kind in which all words of `text` occur, those named so first."""
        words = text.lower().split()
        if not words:
            return ()
        hits: list[tuple[bool, Hit]] = []
        for kind, entries in self._all_indexes():
            for entry in entries:
                named = " ".join((entry.name, *entry.aliases, entry.title)).lower()
                described = " ".join(
                    (named, getattr(entry, "vendor", ""), getattr(entry, "family", ""), entry.note)
                )
                if all(word in described.lower() for word in words):
                    hits.append(
                        (not all(word in named for word in words), Hit(kind, entry.name, entry.title))
                    )
        return tuple(hit for _, hit in sorted(hits, key=lambda pair: pair[0]))

    def add(self, path: Path | str, *, replace: bool = False) -> tuple[str, ...]:
        """Check a TOML file and copy it into the user's folder; return the names it adds as "kind name"."""
        from datahall.catalog.install import install

        file = Path(path)
        names = self.check(file)
        install(file, user_folder(), replace=replace)
        for key in [key for key in vars(self) if key not in {"layers", "_shipped"}]:
            del self.__dict__[key]
        load.cache_clear()
        return names

    def check(self, path: Path | str) -> tuple[str, ...]:
        """Read a TOML file as if it were a layer; all its problems are raised at once."""
        read = index.read_document(Path(path))
        problems: list[Problem] = []
        names = [
            f"{kind} {entry.name}"
            for kind in index.KINDS
            for entry in self._entries(read, kind, _reader(kind), problems)
        ]
        if not names and not problems:
            problems.append(
                Problem(str(path), "holds no entries", "write [chip.NAME], [model.NAME], … tables")
            )
        _raise(problems, str(path))
        return tuple(names)

    @cached_property
    def sources(self) -> dict[str, Source]:
        """Every source that the shipped files and the layers name."""
        problems: list[Problem] = []
        found: dict[str, Source] = {}
        for read in (*map(self._document, sorted(self._shipped.rglob("*.toml"))), *self._overlay):
            found |= index.read_sources(read, problems)
        _raise(problems)
        return found

    @cached_property
    def _chips(self) -> Index[Chip]:
        return self._read("chip", read_chip)

    @cached_property
    def _links(self) -> Index[Link]:
        return self._read("link", read_link)

    @cached_property
    def _servers(self) -> Index[Server]:
        return self._read("server", read_server)

    @cached_property
    def _switches(self) -> Index[Switch]:
        return self._read("switch", read_switch)

    @cached_property
    def _cables(self) -> Index[Cable]:
        return self._read("cable", read_cable)

    @cached_property
    def _reroutes(self) -> Index[Reroute]:
        return self._read("reroute", read_reroute)

    @cached_property
    def _known_fabrics(self) -> Index[KnownFabric]:
        return self._read("fabric", read_known_fabric)

    @cached_property
    def _models(self) -> Index[Model]:
        from datahall.catalog.entries.model_entry import read_model

        return self._read("model", read_model)

    @cached_property
    def _offers(self) -> Index[Offer]:
        path = self._shipped / "offers.csv"
        return self._read("offer", read_offer, read_offers(path) if path.exists() else ())

    def _all_indexes(self) -> Iterator[tuple[str, Iterable[Named]]]:
        yield "chip", self._chips
        yield "link", self._links
        yield "server", self._servers
        yield "model", self._models
        yield "offer", self._offers

    @cached_property
    def _documents(self) -> dict[Path, Document]:
        return {}

    def _document(self, path: Path) -> Document:
        if path not in self._documents:
            self._documents[path] = index.read_document(path)
        return self._documents[path]

    @cached_property
    def _overlay(self) -> tuple[Document, ...]:
        return tuple(
            self._document(path) for folder in self.layers for path in sorted(folder.rglob("*.toml"))
        )

    @cached_property
    def _shared_sources(self) -> dict[str, Source]:
        """The sources any file may name: those in the shipped `sources.toml`."""
        problems: list[Problem] = []
        path = self._shipped / "sources.toml"
        found = index.read_sources(self._document(path), problems) if path.exists() else {}
        _raise(problems)
        return found

    def _read(self, kind: str, reader: Reader[T], listed: Iterable[T] = ()) -> Index[T]:
        pattern = _SHIPPED_FILES.get(kind)
        shipped = [self._document(path) for path in sorted(self._shipped.glob(pattern))] if pattern else []
        problems: list[Problem] = []
        entries = list(listed)
        for read in (*shipped, *self._overlay):
            entries += self._entries(read, kind, reader, problems)
        _raise(problems)
        return Index(kind, entries)

    def _entries(self, read: Document, kind: str, reader: Reader[T], problems: list[Problem]) -> list[T]:
        """Read the entries of one kind in a file; every problem is appended to `problems`."""
        tables = list(index.tables(read, kind))
        if not tables:
            return []
        sources = self._shared_sources | index.read_sources(read, problems)
        found: list[T] = []
        for name, table in tables:
            entry = Entry(read, (kind, name), sources)
            item = reader(entry, name, table)
            self._check_references(entry, kind, table)
            problems.extend(entry.problems)
            if item is not None and not entry.problems:
                found.append(item)
        return found

    def _index_of(self, kind: str) -> Index[Chip] | Index[Link] | Index[Server] | Index[Switch]:
        match kind:
            case "chip":
                return self._chips
            case "link":
                return self._links
            case "server":
                return self._servers
            case _:
                return self._switches

    def _check_references(self, entry: Entry, kind: str, table: Table) -> None:
        for key, target in _REFERENCES.get(kind, ()):
            name = table.get(key)
            if not isinstance(name, str):
                continue
            known = self._index_of(target)
            beside = [other for other, _ in index.tables(entry.document, target)]
            if name not in known and name not in beside:
                close = nearest(name, [*known.entries, *beside], 1)
                entry.problem(
                    f'"{name}" is not a {target}', key, hint=f'did you mean "{close[0]}"?' if close else ""
                )


def _named_folders(extra: Iterable[Path | str], user: bool) -> Iterator[Path]:
    """Folders that somebody named; one that is not there is an error."""
    named = os.environ.get("DATAHALL_CATALOG", "") if user else ""
    for place, where in [
        *((folder, "DATAHALL_CATALOG") for folder in named.split(os.pathsep) if folder),
        *((folder, "Catalog(extra=…)") for folder in extra),
    ]:
        folder = Path(place)
        if not folder.is_dir():
            raise CatalogError(
                f"{folder} is not a folder", where=where, hint="name a folder with TOML files in it"
            )
        yield folder


def _reader(kind: str) -> Reader[Named]:
    if kind == "model":
        from datahall.catalog.entries.model_entry import read_model

        return read_model
    readers: dict[str, Reader[Named]] = {
        "chip": read_chip, "link": read_link, "server": read_server, "offer": read_offer,
        "switch": read_switch, "cable": read_cable, "reroute": read_reroute, "fabric": read_known_fabric,
    }  # fmt: skip
    return readers[kind]


def _raise(problems: list[Problem], name: str = "") -> None:
    if problems:
        unique = list({repr(problem): problem for problem in problems}.values())
        raise DocumentError(name or problems[0].where.rpartition(":")[0] or "catalogue", unique)


@cache
def load() -> Catalog:
    """Return the default catalogue, read once."""
    return Catalog()
