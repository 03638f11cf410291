"""Where entries of the catalogue lie besides those shipped: the user's folder, and those that somebody named."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from datahall.errors import CatalogError


def user_folder() -> Path:
    """Return the folder of the user's own entries, which need not exist."""
    data_home = os.environ.get("XDG_DATA_HOME", "")
    return (Path(data_home) if data_home else Path.home() / ".local" / "share") / "datahall" / "catalog"


def named_folders(extra: Iterable[Path | str], user: bool) -> Iterator[Path]:
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
