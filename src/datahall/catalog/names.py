"""The names in a shipped file, found without reading what stands under them.

To know that a chip exists, which file has it, or which is nearest to one that does not exist, its name is enough;
parsing every file for that takes ten times as long.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

_LINE = re.compile(
    r'^(?:\[(?P<kind>\w+)\.(?:"(?P<quoted>[^"]+)"|(?P<bare>[\w-]+))\]'
    r'|title = "(?P<title>[^"]*)"|aliases = \[(?P<aliases>[^]]*)\])',
    re.MULTILINE,
)
_TEXT = re.compile(r'"([^"]*)"')


def names_in(path: Path, kind: str) -> Iterator[tuple[str, str]]:
    """The name, title and aliases of each entry of a kind in a file, each with the entry's name."""
    entry = ""
    for line in _LINE.finditer(path.read_text(encoding="utf-8")):
        if line["kind"]:
            entry = (line["quoted"] or line["bare"]) if line["kind"] == kind else ""
            words = [entry]
        else:
            words = _TEXT.findall(line["aliases"] or "") or [line["title"] or ""]
        yield from ((word, entry) for word in words if word and entry)
