"""The names that an input may be, for completion in a shell and for lists of a page."""

from __future__ import annotations

from collections.abc import Iterable

from datahall.scenario.kinds import Kind, Listed, Name


def inner(kind: Kind) -> Kind:
    """What each of a list may be; else the kind itself."""
    return kind.of if isinstance(kind, Listed) else kind


def names(kind: Kind) -> Iterable[str]:
    """All values that an input may have by name."""
    from datahall.catalog import load  # a shell that completes a word of ours loads no catalogue

    if kind.words:
        return kind.words
    assert isinstance(kind, Name)
    match kind.of:
        case "entry":
            return load().names("chip")
        case "fabric":
            from datahall.scenario.words import TOPOLOGIES

            return (*TOPOLOGIES, *load().names("fabric"))
        case "priced":
            return (*load().names("model"), *load().names("chip"))
        case "provider":
            return sorted({offer.provider for offer in load().offers()})
        case "workload":
            return (*load().names("dataset"), *load().names("model"))
        case "framework":
            from datahall.training.step.framework import frameworks

            return frameworks()
        case "traffic":
            from datahall.workload.traffic.presets import presets

            return presets()
    return load().names(kind.of)
