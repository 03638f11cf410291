"""After the studio's page is built: what it was built from, and the licences of what is in it.

python release/studio.py           # `make studio-build` runs it
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCES, BUILT = ROOT / "studio-ui", ROOT / "src" / "datahall" / "studio" / "static"
RECORD, LICENCES = BUILT / "BUILD.json", BUILT / "licences.txt"


def sources() -> Iterator[Path]:
    """What the page is built from, in order."""
    kept = (path for path in SOURCES.rglob("*") if path.is_file())
    yield from sorted(path for path in kept if "node_modules" not in path.relative_to(SOURCES).parts)


def digest() -> str:
    """A hash of all that, whatever the ends of its lines."""
    whole = sha256()
    for path in sources():
        text = path.read_bytes().replace(b"\r\n", b"\n")
        whole.update(f"{path.relative_to(SOURCES).as_posix()}\0{len(text)}\0".encode() + text)
    return whole.hexdigest()


def record() -> None:
    """Write both files beside the page."""
    packages = json.loads((SOURCES / "package.json").read_text())["dependencies"]
    said = []
    for name in sorted(packages):
        home = SOURCES / "node_modules" / name
        version = json.loads((home / "package.json").read_text())["version"]
        (licence,) = home.glob("LICENSE*")
        said.append(f"{name} {version}\n\n{licence.read_text().strip()}\n")
    LICENCES.write_text("\n\n".join(said))
    RECORD.write_text(json.dumps({"sources": digest()}, indent=2) + "\n")


if __name__ == "__main__":
    record()
