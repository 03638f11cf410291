"""Traffic by name, with where its figures are from."""

from __future__ import annotations

from functools import cache
from importlib import resources

import msgspec

from datahall.breakdown import Kind, Source
from datahall.errors import UnknownNameError
from datahall.workload.traffic.conversation import Conversation
from datahall.workload.traffic.shapes import Lengths


class Preset(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Lengths and sharing of some known traffic; when it comes, and how fast, is the asker's."""

    title: str
    prompt: Lengths
    output: Lengths
    source: Source
    spread: Kind  # of the width of the distributions; the source's kind is that of their means
    conversation: Conversation = Conversation()


@cache
def presets() -> dict[str, Preset]:
    """All of them, by name."""
    text = (
        resources.files("datahall.workload.traffic").joinpath("data/presets.toml").read_text(encoding="utf-8")
    )
    return msgspec.toml.decode(text, type=dict[str, Preset])


def preset(name: str) -> Preset:
    """One of them; an unknown name is an error with the nearest ones."""
    known = presets()
    if name not in known:
        raise UnknownNameError("traffic", name, known, hint=f"traffic presets: {', '.join(known)}")
    return known[name]
