"""Layers over the shipped data, adding to one's own, and searching it all."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from datahall.catalog import Catalog, load
from datahall.catalog.index import Named
from datahall.catalog.kinds import KINDS
from datahall.errors import CatalogError, DocumentError, OutputError, UnknownNameError

MINE = """\
[source.mine]
title = "my bench"
date = "2026-10"
kind = "measured"

[link.lab-link]
source = "mine"
title = "Lab link"
kind = "scale-up"
bandwidth = "10 GB/s"

[chip.{name}]
source = "mine"
title = "Lab chip"
vendor = "Lab"
family = "hopper"
memory = "{memory}"
scale_up = "lab-link"

[offer.lab-rent]
source = "mine"
provider = "lab"
chip = "{name}"
price = "$1.50/h"
"""


def write(folder: Path, name: str = "lab-chip", memory: str = "64 GB", file: str = "lab.toml") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / file
    path.write_text(MINE.format(name=name, memory=memory))
    return path


def test_a_layer_adds_entries(home: Path) -> None:
    write(home)
    catalog = Catalog()
    assert catalog.chip("lab-chip").memory_bytes == 64e9
    assert catalog.chip("lab-chip").facts["memory_bytes"].source.kind == "measured"
    assert catalog.offers("lab-chip")[0].usd_per_hour == 1.5
    assert catalog.offers("lab-chip")[0].date == "2026-10"
    assert catalog.scale_up_of(catalog.chip("lab-chip")).technology == "lab-link"  # nobody said: its own
    assert catalog.chip("h100").name == "h100-sxm"


def test_a_later_layer_overrides_an_entry_of_the_same_name(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(home, "h100-sxm", "1 GB")
    assert Catalog().chip("h100-sxm").memory_bytes == 1e9
    write(tmp_path / "env", "h100-sxm", "2 GB")
    write(tmp_path / "env2", "h100-sxm", "3 GB")
    monkeypatch.setenv("DATAHALL_CATALOG", os.pathsep.join(str(tmp_path / name) for name in ("env", "env2")))
    assert Catalog().chip("h100-sxm").memory_bytes == 3e9
    write(tmp_path / "given", "h100-sxm", "4 GB")
    assert Catalog(extra=[tmp_path / "given"]).chip("h100-sxm").memory_bytes == 4e9
    assert Catalog(user=False).chip("h100-sxm").memory_bytes == 80e9


@pytest.mark.usefixtures("home")
def test_a_named_folder_that_is_not_there_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(CatalogError, match="is not a folder"):
        Catalog(extra=[tmp_path / "none"])
    monkeypatch.setenv("DATAHALL_CATALOG", str(tmp_path / "none"))
    with pytest.raises(CatalogError, match="DATAHALL_CATALOG"):
        Catalog()


def test_a_user_folder_that_is_not_there_is_fine(home: Path) -> None:
    assert not home.exists()
    assert Catalog().chip("h100").name == "h100-sxm"


def test_a_mistake_in_a_layer_is_met_when_its_kind_is_read(home: Path) -> None:
    write(home, memory="64 GW")
    catalog = Catalog()
    assert catalog.link("lab-link").bytes_per_s == 10e9
    with pytest.raises(DocumentError, match=r"lab.toml:17"):
        catalog.chips()


def test_add_copies_a_checked_file_and_the_entry_is_there(home: Path, tmp_path: Path) -> None:
    catalog = Catalog()
    with pytest.raises(UnknownNameError):
        catalog.chip("lab-chip")
    added = catalog.add(write(tmp_path / "work"))
    assert added == ("chip lab-chip", "link lab-link", "offer lab-rent")
    assert catalog.chip("lab-chip").memory_bytes == 64e9
    assert Catalog().chip("lab-chip").memory_bytes == 64e9
    assert [path.name for path in home.iterdir()] == ["lab.toml"]


def test_add_copies_into_the_folder_that_is_named(home: Path, tmp_path: Path) -> None:
    mine, other = tmp_path / "mine", tmp_path / "other"
    mine.mkdir()
    other.mkdir()
    catalog = Catalog(extra=[mine])
    catalog.add(write(tmp_path / "work"))
    assert catalog.chip("lab-chip").memory_bytes == 64e9
    assert [path.name for path in mine.iterdir()] == ["lab.toml"]
    assert not home.exists()
    with pytest.raises(CatalogError, match="2 folders are named"):
        Catalog(extra=[mine, other]).add(write(tmp_path / "work"))


@pytest.mark.usefixtures("home")
def test_add_refuses_to_overwrite_unless_told(tmp_path: Path) -> None:
    catalog = Catalog()
    catalog.add(write(tmp_path / "work"))
    changed = write(tmp_path / "work", memory="32 GB")
    with pytest.raises(OutputError, match="exists"):
        catalog.add(changed)
    assert catalog.chip("lab-chip").memory_bytes == 64e9
    catalog.add(changed, replace=True)
    assert catalog.chip("lab-chip").memory_bytes == 32e9


def test_add_copies_nothing_from_a_file_with_problems(home: Path, tmp_path: Path) -> None:
    with pytest.raises(DocumentError, match="1 problem"):
        Catalog().add(write(tmp_path / "work", memory="lots"))
    assert not home.exists()


@pytest.mark.parametrize(
    ("number", "reason"), [(errno.ENOSPC, "No space left on device"), (errno.EACCES, "Permission denied")]
)
def test_add_says_why_it_could_not_write_and_leaves_no_part(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, reason: str
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "fsync", refuse)
    with pytest.raises(OutputError, match=reason) as caught:
        Catalog().add(write(tmp_path / "work"))
    assert caught.value.hint == "the catalogue is unchanged"
    assert list(home.iterdir()) == []


@pytest.mark.usefixtures("home")
def test_the_default_catalogue_is_read_once() -> None:
    load.cache_clear()
    assert load() is load()


def test_search_looks_through_every_kind(catalog: Catalog) -> None:
    hits = catalog.search("h100")
    assert {"chip", "server", "offer"} <= {hit.kind for hit in hits}
    assert hits[0].name == "h100-sxm"
    assert catalog.search("trillium")[0].name == "tpu-v6e"
    assert catalog.search("no-such-thing") == ()
    assert catalog.search("  ") == ()


def test_find_takes_any_kind(catalog: Catalog) -> None:
    assert [catalog.find(name).name for name in ("h100", "nvlink-4", "nvl72")] == [
        "h100-sxm",
        "nvlink-4",
        "gb200-nvl72",
    ]
    with pytest.raises(UnknownNameError, match="datahall catalog search"):
        catalog.find("h100-dgx-server")


@pytest.mark.parametrize("kind", ["link", "server", "model", "grid"])
def test_unknown_names_of_every_kind_offer_near_ones(catalog: Catalog, kind: str) -> None:
    near = {"link": "nvlink-9", "server": "dgx-h1000", "model": "llama-3.1-70bb", "grid": "irelands"}[kind]
    with pytest.raises(UnknownNameError) as caught:
        getattr(catalog, kind)(near)
    assert len(caught.value.nearest) == 3


def test_every_source_is_named_by_some_fact(catalog: Catalog) -> None:
    entries = [entry for kind in KINDS if kind != "offer" for entry in catalog.every(kind)]
    cited = {fact.source.title for entry in entries for fact in entry.facts.values()}
    cited |= {
        fact.source.title
        for chip in catalog.chips()
        for level in chip.levels
        for fact in level.facts.values()
    }
    cited |= {
        entry.source.title for entry in entries if hasattr(entry, "source")
    }  # of words, which are no facts
    assert {source.title for source in catalog.sources.values()} <= cited
    assert catalog.sources["datahall-h200"].kind == "measured"


def test_importing_the_catalogue_reads_no_data() -> None:
    code = (
        "import sys, pathlib\n"
        "opened = []\n"
        "sys.addaudithook(lambda event, args: opened.append(str(args[0])) if event == 'open' else None)\n"
        "import datahall.catalog\n"
        "assert not [path for path in opened if path.endswith(('.toml', '.csv'))], opened\n"
        "assert 'genai_prices' not in sys.modules\n"
    )
    subprocess.run(
        [sys.executable, "-c", code], check=True, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    )


@pytest.mark.parametrize("kind", ["chip", "model", "server", "link", "switch"])
def test_a_name_is_found_without_reading_the_files_as_it_is_with(kind: str) -> None:
    """Names are looked up by a scan of the shipped files; the entries that are read say the same of themselves."""
    catalog = Catalog(user=False)
    kinds: dict[str, tuple[Sequence[Named], Callable[[str], Named]]] = {
        "chip": (catalog.chips(), catalog.chip),
        "model": (catalog.models(), catalog.model),
        "server": (catalog.servers(), catalog.server),
        "link": (catalog.links(), catalog.link),
        "switch": (catalog.switches(), catalog.switch),
    }
    entries, one = kinds[kind]
    assert {catalog.name_of(kind, entry.name) for entry in entries} == {entry.name for entry in entries}
    for entry in entries:
        for word in (entry.name, entry.title, *entry.aliases):
            assert catalog.name_of(kind, word) == entry.name
            assert catalog.knows(kind, word)
            assert one(word) == entry
    assert not catalog.knows(kind, "nobody's")
