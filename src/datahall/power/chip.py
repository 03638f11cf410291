"""The power of a chip from what its kernels do.

    P = idle + (D^p + H^p)^(1/p)     p = −2,  H = limit − idle
    D = busy·W_busy + tensor·W_tensor + memory·W_memory + links·W_link + cache·W_cache + scaled·W_scaled

D is what the parts would add at full clock.  Kernels of a step differ and each is held to the limit by lowering the
clock, so the mean nears the limit smoothly: a chip never draws more, and never less than idle.
Reference: the additive form of activity × power per unit is that of Hong and Kim (2010), An integrated GPU power and
performance model.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import hypot, isfinite

from datahall.breakdown import (
    Breakdown,
    assumed,
    derived,
    difference,
    fact,
    fitted,
    overlap,
    product,
    total,
)
from datahall.catalog.entries.chip import Chip
from datahall.errors import UnsupportedError
from datahall.power.activity import WIDE_BYTES, Activity
from datahall.power.constants import band_of, basis_of, chip_constants, constants

IDLE_FRACTION = (
    0.15  # of the limit: about what chips draw whose idle power is published (A100 0.16, H200 0.18)
)
LINK_J_PER_BYTE = 80e-12  # both ends of an electrical link of some 5 pJ per bit and end
NOTHING_W = 1e-6  # a part that draws less is left out of the figure
LIMIT_DEGREE = -2.0  # how smoothly the limit is neared


# of a chip, as Activity calls them before the unit, and in words
PARTS = {
    "busy": "clocks and instructions",
    "tensor": "tensor cores",
    "memory": "memory",
    "link": "links",
    "cache": "attention to caches",
    "scaled": "widening of weights",
}


def full_power(chip: Chip) -> dict[str, float]:
    """What each of `PARTS` of a chip adds to its idle power when it is fully used [W]."""
    figures = _at_full_use(chip, _headroom(chip))
    return {part: figures[part].value if part in figures else 0.0 for part in PARTS}


def chip_power_w(chip: Chip, activity: Activity) -> float:
    """Power of a chip in some span of time [W].

    >>> from datahall.catalog import load
    >>> chip = load().chip("h200")
    >>> chip_power_w(chip, Activity()), chip_power_w(chip, Activity(0.7, 0.2, 0.0, 1.0)) > 650
    (124.0, True)
    """
    return held(demand_w(full_power(chip), activity), idle_w=idle_power_w(chip), limit_w=power_limit_w(chip))


def held(demand_w: float, *, idle_w: float, limit_w: float) -> float:
    """Power of a chip whose parts would add so much to its idle power at full clock [W].

        P = idle + H · x/√(1 + x²)     x = D/H, H = limit − idle

    The same as (D^p + H^p)^(1/p) above idle for p = −2.

    >>> held(590.0, idle_w=110.0, limit_w=700.0) == 110.0 + 590.0 / 2**0.5
    True
    """
    headroom_w = limit_w - idle_w
    wanted = demand_w / headroom_w
    return idle_w + headroom_w * (wanted / hypot(1.0, wanted))


def demand_w(full_w: Mapping[str, float], activity: Activity) -> float:
    """What the parts of a chip would add to its idle power at full clock [W]."""
    return sum(_use(activity, part) * full_w[part] for part in PARTS)


def _use(activity: Activity, part: str) -> float:
    return float(getattr(activity, f"{part}_fraction"))


def power_limit_w(chip: Chip) -> float:
    """The power limit of a chip [W]; without one its power is not known."""
    if not isfinite(chip.power_limit_w):
        raise UnsupportedError(
            f"the power limit of {chip.title} is not published", hint="give its entry a power_limit"
        )
    return chip.power_limit_w


def idle_power_w(chip: Chip) -> float:
    """What a chip draws with a context loaded and nothing running [W]."""
    return _idle(chip).value


def chip_power(chip: Chip, activity: Activity, name: str = "power of a chip") -> Breakdown:
    """The same, down to facts of the chip and fitted constants, with its band [W]."""
    idle, headroom = _idle(chip), _headroom(chip)
    parts = _parts(chip, activity, headroom)
    if not parts:
        return total(name, (idle,)).with_note(basis=basis_of(chip))
    wanted = total("what its parts would add at full clock", parts)
    degree = assumed(
        "how smoothly the limit is neared", LIMIT_DEGREE, "ratio", "kernels differ, each is held to it"
    )
    above = overlap("above idle", wanted, headroom, degree)
    whole = total(name, (idle, above)).with_note(basis=basis_of(chip))
    low, high = band_of("chip", chip)
    most = power_limit_w(chip) / whole.value
    return whole.with_band(low, min(high, most), constants().fitted_on, floor=idle.value)


def _idle(chip: Chip) -> Breakdown:
    known = chip.facts.get("power_idle_w")
    if known is not None:
        return fact("idle power", known.value, "w", known.source, note=known.note)
    share = assumed("share when idle", IDLE_FRACTION, "fraction", "as of chips whose idle power is published")
    return product("idle power", (share, _limit(chip)), "w")


def _limit(chip: Chip) -> Breakdown:
    limit_w, known = power_limit_w(chip), chip.facts.get("power_limit_w")
    if known is None:
        return derived("power limit", limit_w, "w")
    return fact("power limit", limit_w, "w", known.source, note=known.note)


def _headroom(chip: Chip) -> Breakdown:
    return difference("between idle and limit", _limit(chip), _idle(chip))


def _parts(chip: Chip, activity: Activity, headroom: Breakdown) -> tuple[Breakdown, ...]:
    """Each part that does something: how much it is used times what it draws then."""
    return tuple(
        product(PARTS[part], (derived("use", use, "fraction", "by the kernels of this time"), full), "w")
        for part, full in _at_full_use(chip, headroom).items()
        if (use := _use(activity, part)) * full.value > NOTHING_W
    )


def _at_full_use(chip: Chip, headroom: Breakdown) -> dict[str, Breakdown]:
    """What each part draws when it is fully used, of parts that draw anything."""
    found = chip_constants(chip)
    memory, links = _rate(chip, "memory_bytes_per_s"), _rate(chip, "scale_up_bytes_per_s")
    narrow = derived("values of a byte", 1.0 / WIDE_BYTES, "ratio", "of 16 bits")
    factors: dict[str, tuple[Breakdown | None, ...]] = {
        "busy": (_constant(chip, "times the headroom", found.busy_headroom_ratio, "ratio"), headroom),
        "tensor": (
            _constant(chip, "times the headroom, at the peak", found.tensor_headroom_ratio, "ratio"),
            headroom,
        ),
        "memory": (_constant(chip, "energy of a byte", found.memory_j_per_byte, "j_per_byte"), memory),
        "link": (
            assumed("energy of a byte", LINK_J_PER_BYTE, "j_per_byte", "both ends, 5 pJ per bit each"),
            links,
        ),
        "cache": (_constant(chip, "energy of a byte", found.cache_j_per_byte, "j_per_byte"), memory),
        "scaled": (
            _constant(chip, "energy of a value", found.scaled_j_per_value, "j_per_value"),
            narrow,
            memory,
        ),
    }
    return {part: full for part in PARTS if (full := _full(factors[part])) is not None}


def _full(factors: Sequence[Breakdown | None]) -> Breakdown | None:
    """What a part draws at full use; None where a rate is not published, or nothing is drawn."""
    known = [one for one in factors if one is not None]
    whole = product("at full use", known, "w")
    return whole if len(known) == len(factors) and whole.value > 0 else None


def _constant(chip: Chip, name: str, value: float, unit: str) -> Breakdown:
    known = constants()
    return fitted(name, value, unit, known.fitted_on, known.source, basis=basis_of(chip))


def _rate(chip: Chip, field: str) -> Breakdown | None:
    """A bandwidth of a chip, where it is published."""
    known = chip.facts.get(field)
    return None if known is None else fact(known.label, known.value, "bytes_per_s", known.source)
