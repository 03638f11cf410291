"""Copy a checked file into the user's folder, whole or not at all."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from datahall.errors import OutputError, option


def install(file: Path, folder: Path, *, replace: bool) -> Path:
    """Copy `file` into `folder` under its own name; a reader sees the old one or the new one, never half."""
    target = folder / (file.name if file.suffix == ".toml" else f"{file.name}.toml")
    if target.exists() and not replace:
        raise OutputError(
            f"{target} exists", hint=f"give it another name, or replace it: {option('replace')}"
        )
    try:
        folder.mkdir(parents=True, exist_ok=True)
        content = file.read_bytes()
        descriptor, name = tempfile.mkstemp(dir=folder, prefix=".", suffix=".part")
        try:
            with os.fdopen(descriptor, "wb") as part:
                part.write(content)
                part.flush()
                os.fsync(part.fileno())
            os.chmod(name, 0o644)
            os.replace(name, target)
        except BaseException:
            os.unlink(name)
            raise
    except OSError as error:
        raise OutputError(
            f"{target} could not be written: {error.strerror}", hint="the catalogue is unchanged"
        ) from error
    return target
