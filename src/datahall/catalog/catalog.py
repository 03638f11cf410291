"""The catalogue: shipped facts, and the user's own on top of them.

Layers, each overriding entries of the same name in the ones before it: the data shipped here, the user's
folder (`$XDG_DATA_HOME/datahall/catalog`), the folders in `DATAHALL_CATALOG`, and folders given to
`Catalog(extra=…)`.  Each kind is read the first time it is asked for.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from functools import cache, cached_property
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Any

from datahall.breakdown import Source
from datahall.catalog import index
from datahall.catalog.document import Document, Table
from datahall.catalog.fact import Entry
from datahall.catalog.folders import named_folders, user_folder
from datahall.catalog.index import Index, Named, folded, unknown
from datahall.catalog.kinds import KINDS, references
from datahall.catalog.names import names_in
from datahall.catalog.search import Hit, search
from datahall.catalog.shelves.costs import OfCosts
from datahall.catalog.shelves.failures import Failing
from datahall.catalog.shelves.sites import OfSites
from datahall.catalog.shelves.supply import OfSupply
from datahall.errors import CatalogError, DocumentError, Problem, UnknownNameError, nearest

if TYPE_CHECKING:
    from datahall.catalog.entries.chip import Chip
    from datahall.catalog.entries.model import Model
    from datahall.catalog.entries.network.cable import Cable
    from datahall.catalog.entries.network.known_fabric import KnownFabric
    from datahall.catalog.entries.network.link import Link
    from datahall.catalog.entries.network.reroute import Reroute
    from datahall.catalog.entries.network.switch import Switch
    from datahall.catalog.entries.network.transport import Transport
    from datahall.catalog.entries.offer import Offer
    from datahall.catalog.entries.server import Server
    from datahall.catalog.entries.stored.dataset import Dataset
    from datahall.catalog.entries.stored.storage import Storage

SHIPPED = Path(__file__).parent / "data"


class Catalog(Failing, OfSites, OfCosts, OfSupply):
    """Chips, links, servers, models, offers, what networks are made of and how often it breaks, by name."""

    def __init__(
        self, extra: Iterable[Path | str] = (), *, shipped: Path = SHIPPED, user: bool = True
    ) -> None:
        self._shipped = shipped
        self.user = user  # whether entries of the user's own lie over those shipped
        self.extra = tuple(map(str, extra))  # folders that whoever asks has named
        self.layers = (*((user_folder(),) if user else ()), *named_folders(self.extra, user))

    @property
    def folders(self) -> tuple[Path, ...]:
        """Where its entries lie: what is shipped first, then layer by layer."""
        return (self._shipped, *self.layers)

    def chip(self, name: str) -> Chip:
        """Return a chip by name or alias."""
        found: Chip = self._entry("chip", name)
        return found

    def name_of(self, kind: str, name: str) -> str:
        """The name of a chip or model by any of its names; of the shipped ones nothing but names is read."""
        found = self._place(kind, name)
        if found is None:
            raise unknown(kind, name, (entry for entry, _ in self._places[kind].values()))
        return found[0]

    def knows(self, kind: str, name: str) -> bool:
        """Whether a chip or model has this name; the error of one that has not looks for names like it."""
        return self._place(kind, name) is not None

    def is_own(self, kind: str, name: str) -> bool:
        """Whether an entry stands in a file of the user's, and not only among those that ship."""
        found = self._place(kind, name)
        return found is not None and found[1] is None

    def chips(self) -> tuple[Chip, ...]:
        """Every chip."""
        return tuple(self._all("chip"))

    def link(self, name: str) -> Link:
        """Return a link by name or alias."""
        found: Link = self._all("link").get(name)
        return found

    def scale_up_of(self, part: Chip | Server) -> Link | None:
        """The link that joins a chip, or the chips of a server, to its scale-up domain; None where it is not known."""
        return self.link(part.scale_up_link) if part.scale_up_link else None

    def links(self) -> tuple[Link, ...]:
        """Every link."""
        return tuple(self._all("link"))

    def server(self, name: str) -> Server:
        """Return a server, rack, pod or cluster by name or alias."""
        found: Server = self._all("server").get(name)
        return found

    def servers(self) -> tuple[Server, ...]:
        """Every server, rack, pod and cluster."""
        return tuple(self._all("server"))

    def switch(self, name: str) -> Switch:
        """Return a switch by name or alias."""
        found: Switch = self._all("switch").get(name)
        return found

    def switches(self) -> tuple[Switch, ...]:
        """Every switch."""
        return tuple(self._all("switch"))

    def cable(self, name: str) -> Cable:
        """Return a cable by name or alias."""
        found: Cable = self._all("cable").get(name)
        return found

    def cables(self) -> tuple[Cable, ...]:
        """Every cable."""
        return tuple(self._all("cable"))

    def reroute(self, name: str) -> Reroute:
        """Return a way to reroute by name."""
        found: Reroute = self._all("reroute").get(name)
        return found

    def known_fabric(self, name: str) -> KnownFabric:
        """Return a published fabric by name or alias."""
        found: KnownFabric = self._all("fabric").get(name)
        return found

    def known_fabrics(self) -> tuple[KnownFabric, ...]:
        """Every published fabric."""
        return tuple(self._all("fabric"))

    def storage(self, name: str) -> Storage:
        """Return a storage tier by name or alias."""
        found: Storage = self._entry("storage", name)
        return found

    def storages(self) -> tuple[Storage, ...]:
        """Every storage tier."""
        return tuple(self._all("storage"))

    def dataset(self, name: str) -> Dataset:
        """Return a data set by name or alias."""
        found: Dataset = self._entry("dataset", name)
        return found

    def datasets(self) -> tuple[Dataset, ...]:
        """Every data set."""
        return tuple(self._all("dataset"))

    def transport(self, name: str) -> Transport:
        """Return a transport by name or alias."""
        found: Transport = self._all("transport").get(name)
        return found

    def transports(self) -> tuple[Transport, ...]:
        """Every transport."""
        return tuple(self._all("transport"))

    def model(self, name: str) -> Model:
        """Return a model by name or alias."""
        found: Model = self._entry("model", name)
        return found

    def models(self) -> tuple[Model, ...]:
        """Every model."""
        return tuple(self._all("model"))

    def offers(self, chip: str = "", kind: str = "") -> tuple[Offer, ...]:
        """Every offer, or those of one chip and kind, cheapest by the hour first; by spot, those with a spot price."""
        found = list(self._offers_of[self.name_of("chip", chip)] if chip else self._all("offer"))
        if kind == "spot":
            found = [offer for offer in found if not isnan(offer.hourly_usd(kind))]
        elif kind:
            found = [offer for offer in found if offer.kind == kind]
        return tuple(sorted(found, key=lambda offer: (isnan(offer.hourly_usd(kind)), offer.hourly_usd(kind))))

    @cached_property
    def _offers_of(self) -> dict[str, list[Offer]]:
        """Every offer by the name of its chip."""
        found: dict[str, list[Offer]] = defaultdict(list)
        for offer in self._all("offer"):
            if offer.chip:
                found[self.name_of("chip", offer.chip)].append(offer)
        return found

    def names(self, kind: str) -> tuple[str, ...]:
        """The names of every entry of a kind."""
        return tuple(self._all(kind).entries)

    def every(self, kind: str) -> tuple[Named, ...]:
        """Every entry of a kind."""
        return tuple(self._all(kind))

    def find(self, name: str) -> Chip | Link | Server | Model:
        """Return the chip, link, server or model called `name`, whichever there is first."""
        indexes = [self._all(kind) for kind, row in KINDS.items() if row.listed]
        for entries in indexes:
            if name in entries:
                found: Chip | Link | Server | Model = entries.get(name)
                return found
        known = [entry for entries in indexes for entry in entries.entries]
        raise UnknownNameError("name", name, known, hint="look for it: datahall catalog search")

    def search(self, text: str) -> tuple[Hit, ...]:
        """Return entries of every kind in which all words of `text` occur, those named so first."""
        return search(((kind, self._all(kind)) for kind, row in KINDS.items() if row.searched), text)

    @property
    def own_folder(self) -> Path:
        """Where entries are added: the folder that whoever asks has named, or the user's."""
        if len(self.extra) > 1:
            raise CatalogError(
                f"{len(self.extra)} folders are named, and entries are added to one",
                hint="name the one to add to",
            )
        return Path(self.extra[0]) if self.extra else user_folder()

    def add(self, path: Path | str, *, replace: bool = False) -> tuple[str, ...]:
        """Check a TOML file and copy it into one's own folder; return the names it adds as "kind name"."""
        from datahall.catalog.install import install

        file, folder = Path(path), self.own_folder
        names = self.check(file)
        install(file, folder, replace=replace)
        for key in [key for key in vars(self) if key not in {"layers", "extra", "user", "_shipped"}]:
            del self.__dict__[key]
        load.cache_clear()
        return names

    def check(self, path: Path | str) -> tuple[str, ...]:
        """Read a TOML file as if it were a layer; all its problems are raised at once."""
        read = index.read_document(Path(path))
        problems: list[Problem] = []
        names = [f"{kind} {entry.name}" for kind in KINDS for entry in self._entries(read, kind, problems)]
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
    def _indexes(self) -> dict[str, Index[Any]]:
        return {}

    def _all(self, kind: str) -> Index[Any]:
        """Every entry of a kind, read once."""
        if kind not in self._indexes:
            self._indexes[kind] = self._index(kind, self._rents() if kind == "offer" else ())
        return self._indexes[kind]

    def _rents(self) -> Iterable[Offer]:
        """The offers that ship: rows of a table, not entries of their own."""
        from datahall.catalog.entries.offer import read_offers

        path = self._shipped / "offers.csv"
        return read_offers(path) if path.exists() else ()

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
    def _places(self) -> dict[str, dict[str, tuple[str, Path | None]]]:
        return {}

    def _place(self, kind: str, name: str) -> tuple[str, Path | None] | None:
        """The entry that has a name, and the shipped file it is in; none for one of the user's."""
        if kind not in self._places:
            words: dict[str, tuple[Path | None, set[str]]] = {}
            for path in sorted(self._shipped.glob(KINDS[kind].files)):
                for word, entry in names_in(path, kind):
                    words.setdefault(entry, (path, set()))[1].add(word)
            words |= {one.name: (None, {*one.aliases, one.title}) for one in self._shelf_of_files(kind, None)}
            found = {
                folded(word): (entry, path) for entry, (path, others) in words.items() for word in others
            }
            self._places[kind] = found | {folded(entry): (entry, path) for entry, (path, _) in words.items()}
        return self._places[kind].get(folded(name))

    @cached_property
    def _shelves(self) -> dict[tuple[str, Path | None], Index[Any]]:
        return {}

    def _shelf_of_files(self, kind: str, path: Path | None) -> Index[Any]:
        """The entries of one shipped file, or of all the user's."""
        if (kind, path) not in self._shelves:
            problems: list[Problem] = []
            entries = [
                entry
                for read in (self._overlay if path is None else (self._document(path),))
                for entry in self._entries(read, kind, problems)
            ]
            _raise(problems)
            self._shelves[kind, path] = Index(kind, entries)
        return self._shelves[kind, path]

    def _entry(self, kind: str, name: str) -> Any:
        """An entry by any of its names; only the file that has it is read."""
        entry = self.name_of(kind, name)
        place = self._place(kind, entry)
        assert place is not None
        return self._shelf_of_files(kind, place[1]).get(entry)

    @cached_property
    def _shared_sources(self) -> dict[str, Source]:
        """The sources any file may name: those in the shipped `sources.toml`."""
        problems: list[Problem] = []
        path = self._shipped / "sources.toml"
        found = index.read_sources(self._document(path), problems) if path.exists() else {}
        _raise(problems)
        return found

    def _index(self, kind: str, listed: Iterable[Any] = ()) -> Index[Any]:
        pattern = KINDS[kind].files
        shipped = [self._document(path) for path in sorted(self._shipped.glob(pattern))] if pattern else []
        problems: list[Problem] = []
        entries = list(listed)
        for read in (*shipped, *self._overlay):
            entries += self._entries(read, kind, problems)
        _raise(problems)
        return Index(kind, entries)

    def _entries(self, read: Document, kind: str, problems: list[Problem]) -> list[Any]:
        """Read the entries of one kind in a file; every problem is appended to `problems`."""
        tables = list(index.tables(read, kind))
        if not tables:
            return []
        reader = index.reader_of(kind)
        sources = self._shared_sources | index.read_sources(read, problems)
        found: list[Any] = []
        for name, table in tables:
            entry = Entry(read, (kind, name), sources)
            item = reader(entry, name, table)
            self._check_references(entry, kind, table)
            problems.extend(entry.problems)
            if item is not None and not entry.problems:
                found.append(item)
        return found

    def _check_references(self, entry: Entry, kind: str, table: Table) -> None:
        for keys, target, name in references(kind, table):
            beside = [other for other, _ in index.tables(entry.document, target)]
            if self._place(target, name) is None and name not in beside:
                known = dict.fromkeys(known for known, _ in self._places[target].values())
                close = nearest(name, [*known, *beside], 1)
                entry.problem(
                    f'"{name}" is not a {target}', *keys, hint=f'did you mean "{close[0]}"?' if close else ""
                )


def _raise(problems: list[Problem], name: str = "") -> None:
    if problems:
        unique = list({repr(problem): problem for problem in problems}.values())
        raise DocumentError(name or problems[0].where.rpartition(":")[0] or "catalogue", unique)


@cache
def load() -> Catalog:
    """Return the default catalogue, read once."""
    return Catalog()
