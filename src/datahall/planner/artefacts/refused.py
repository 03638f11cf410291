"""What a tool cannot be told of a plan, said by name."""

from __future__ import annotations

from collections.abc import Iterable

from datahall.catalog.entries.tool import Tool
from datahall.errors import UnsupportedError

DRIVEN = ("NVIDIA", "AMD")  # makers whose chips the engines' and PyTorch's own packages drive as GPUs


def refuse(tool: Tool, what: Iterable[str], hint: str = "") -> None:
    """An error that names the choices of the plan for which the tool has no word, if there are any."""
    found = [one for one in what if one]
    if found:
        raise UnsupportedError(
            f"{tool.title} {tool.release} has no word for what the plan chose: {'; '.join(found)}", hint=hint
        )
