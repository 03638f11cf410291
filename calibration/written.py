"""What a fit found, written where the product reads it: JSON, which a fresh process reads in a thirtieth of the time."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def write_sets(path: Path, sets: dict[str, Any]) -> None:
    """Write the sets of constants, one number a line, so that a refit is read as a diff."""
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(sets, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
