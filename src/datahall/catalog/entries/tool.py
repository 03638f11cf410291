"""What launchers can be told: the options of a stated release, read from its own parser by `calibration/parsers/`."""

from __future__ import annotations

from functools import cache
from importlib import resources
from typing import Literal

import msgspec

from datahall.breakdown import Source

# flag: there or not; switch: as --x or --no-x; optional: with a value or without
OptionType = Literal["int", "float", "text", "flag", "switch", "optional", "list", "json", "any"]
Plain = str | int | float | bool | None


class ToolOption(msgspec.Struct, frozen=True, kw_only=True):
    """One option, or one key of a file, as a release declares it; the file also has its default and other spellings."""

    type: OptionType
    choices: tuple[Plain, ...] = ()  # no other words do
    known: tuple[Plain, ...] = ()  # words that are declared, where others do too
    of: str = ""  # the object that a key of another one holds
    required: bool = False

    @property
    def words(self) -> tuple[Plain, ...]:
        """Those that its declaration names."""
        return self.choices or self.known


class Flavour(msgspec.Struct, frozen=True, kw_only=True):
    """A model that a tool has by name, and its sizes; 0 where its declaration leaves them out."""

    dim: int
    n_layers: int
    n_heads: int = 0
    n_kv_heads: int = 0
    vocab_size: int = 0
    hidden_dim: int = 0  # of a dense feed-forward, as is inter_dim
    inter_dim: int = 0
    attn_type: str = ""


class Tool(msgspec.Struct, frozen=True, kw_only=True):
    """A launcher of some release."""

    name: str
    title: str
    release: str
    source: Source
    options: dict[str, ToolOption]
    image: str = ""  # of a container that its makers publish, without the tag
    models: dict[str, Flavour] = {}


@cache
def tool(name: str) -> Tool:
    """The options of a tool."""
    text = resources.files("datahall.catalog").joinpath(f"data/tools/{name}.json").read_bytes()
    return msgspec.json.decode(text, type=Tool)
