"""How Datahall is built: by hatchling, with the machine code of the hot loops in a wheel."""

from __future__ import annotations

import shutil
import tomllib

import hatchling.build as hatch
from hatchling.build import (  # noqa: F401  (the tools that build call these)
    build_editable,
    build_sdist,
    get_requires_for_build_editable,
    get_requires_for_build_sdist,
)
from loops import SHIPPED, SOURCE, compile_loops

Settings = dict[str, object] | None


def get_requires_for_build_wheel(config_settings: Settings = None) -> list[str]:
    """What a build needs: the program runs while its loops are compiled."""
    project = tomllib.loads((SOURCE.parent / "pyproject.toml").read_text())["project"]
    return [*hatch.get_requires_for_build_wheel(config_settings), *project["dependencies"]]


def build_wheel(
    wheel_directory: str, config_settings: Settings = None, metadata_directory: str | None = None
) -> str:
    """Compile the loops, build, and leave the tree as it was."""
    try:
        compile_loops()
        return hatch.build_wheel(wheel_directory, config_settings, metadata_directory)
    finally:
        shutil.rmtree(SHIPPED, ignore_errors=True)
