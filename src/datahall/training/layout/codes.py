"""The words of a layout as numbers, for the columns of a space: what is recomputed, and what is moved out where to."""

from __future__ import annotations

from collections.abc import Iterable

from datahall.scenario.words import MODULES, OFFLOADS, TIERS


def module_bits(modules: Iterable[str]) -> int:
    """Modules as a number with one bit for each."""
    return sum(1 << MODULES.index(one) for one in set(modules))


def module_names(bits: int) -> tuple[str, ...]:
    """The inverse of `module_bits`.

    >>> module_names(module_bits(("moe_act", "layernorm")))
    ('layernorm', 'moe_act')
    """
    return tuple(one for at, one in enumerate(MODULES) if bits >> at & 1)


def offload_parts(text: str) -> tuple[str, str]:
    """What leaves a chip and where to.

    >>> offload_parts("optimizer:nvme"), offload_parts("activations")
    (('optimizer', 'nvme'), ('activations', 'host'))
    """
    what, _, tier = text.partition(":")
    return what, tier or TIERS[0]


def offload_code(offload: Iterable[str]) -> int:
    """What is offloaded where as a number: a digit of base 3 for each of OFFLOADS, 0 stays, 1 host, 2 NVMe."""
    parts = dict(map(offload_parts, offload))
    return sum((TIERS.index(tier) + 1) * 3 ** OFFLOADS.index(what) for what, tier in parts.items())


def offload_names(code: int) -> tuple[str, ...]:
    """The inverse of `offload_code`.

    >>> offload_names(offload_code(("optimizer:nvme", "activations")))
    ('optimizer:nvme', 'activations')
    """
    places = {what: code // 3**at % 3 for at, what in enumerate(OFFLOADS)}
    return tuple(what if place == 1 else f"{what}:{TIERS[1]}" for what, place in places.items() if place)
