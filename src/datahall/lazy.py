"""Public names of a room that are loaded when they are first asked for, so that its door opens quickly."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def exporter(room: str, homes: Mapping[str, tuple[str, ...]]) -> Callable[[str], Any]:
    """A module's `__getattr__` for the names of its modules, e.g. {"lengths": ("Fixed", "Uniform")}."""
    module_of = {name: module for module, names in homes.items() for name in names}

    def load(name: str) -> Any:
        if name not in module_of:
            raise AttributeError(f"module {room!r} has no attribute {name!r}")
        return getattr(import_module(f"{room}.{module_of[name]}"), name)

    return load
