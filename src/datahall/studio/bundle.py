"""The built page: its files, read once, as they are sent."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from functools import cache
from hashlib import sha256
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import NamedTuple

FOLDER = "static"
TYPES = {
    "html": "text/html; charset=utf-8", "js": "text/javascript; charset=utf-8", "css": "text/css; charset=utf-8",
    "svg": "image/svg+xml", "png": "image/png", "json": "application/json", "txt": "text/plain; charset=utf-8",
}  # fmt: skip
# nothing from elsewhere, and no script that is not a file of ours; charts bring styles of their own
POLICY = (
    "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; frame-ancestors 'none'"
)


class File(NamedTuple):
    """One file of the page."""

    content_type: str
    body: bytes
    packed: bytes
    tag: str


@cache
def page_files() -> dict[str, File]:
    """By the path at which each is asked for."""
    found: dict[str, File] = {}
    folder = files("datahall.studio") / FOLDER
    for place in folder.iterdir():
        found |= {f"/{path}": one for path, one in _below(place, "")}
    if "/index.html" in found:
        found["/"] = found["/index.html"]
    return found


def _below(place: Traversable, before: str) -> Iterator[tuple[str, File]]:
    path = f"{before}{place.name}"
    if place.is_dir():
        for one in place.iterdir():
            yield from _below(one, f"{path}/")
    else:
        body = place.read_bytes()
        yield (
            path,
            File(
                TYPES.get(path.rpartition(".")[2], "application/octet-stream"),
                body,
                gzip.compress(body, 9, mtime=0),
                sha256(body).hexdigest()[:16],
            ),
        )
