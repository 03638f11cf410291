"""Why a group of chips cannot serve, and what would help where none can."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import TYPE_CHECKING

from datahall.catalog.entries.chip import Chip
from datahall.catalog.entries.model import Model
from datahall.errors import InfeasibleError, ScenarioError, UnsupportedError, option
from datahall.inference.closed_form.early import TooSlow
from datahall.planner.plan import Refusal

if TYPE_CHECKING:  # refusing costs nothing that is not needed for it
    from datahall.inference.engine.replica import Replica


class Refused(Refusal, frozen=True, kw_only=True):
    """A group that does not work; `runs`: the chip knows the format, but is too slow or too small."""

    chip: str
    runs: bool = True
    over_ratio: float = inf  # of what it has over the limit that it breaks, where that is a latency
    longer: str = ""  # limits that it keeps


def refusal_of(
    replica: Replica, precision: str, error: InfeasibleError | UnsupportedError | ScenarioError
) -> Refused:
    """A group on which a latency, the memory or the format is not to be had."""
    degrees = ", ".join(
        f"{name} {getattr(replica, name)}" for name in ("tp", "pp", "dp", "ep") if getattr(replica, name) > 1
    )
    return Refused(
        what=f"{replica.chip.name}, {degrees or '1 chip'}, {precision}",
        why=error.message,
        hint=error.hint,
        chip=replica.chip.name,
        runs=not isinstance(error, UnsupportedError),
        over_ratio=error.over_ratio if isinstance(error, TooSlow) else inf,
        longer=error.longer if isinstance(error, TooSlow) else "",
    )


def unwired(chip: Chip, precision: str, error: ScenarioError, usual: Chip) -> Refused:
    """A chip that the fabric asked for does not join."""
    return Refused(
        what=f"{chip.name}, {precision}",
        why=error.message,
        hint=f"e.g. {option('chips', usual.name)}",
        chip=chip.name,
    )


def not_to_be_had(name: str, why: str) -> Refused:
    """A chip that nobody can have as it is asked for."""
    return Refused(what=name, why=why, chip=name, runs=False)


def nothing_serves(model: Model, chips: Sequence[Chip], refused: Sequence[Refused]) -> InfeasibleError:
    """The error where every group was refused: that of the one that came nearest."""
    names = ", ".join(chip.name for chip in chips)
    if not refused:
        return InfeasibleError(
            f"{model.name} divides over no group of {names}",
            hint=f"another {option('tp')}, or a chip with a larger domain",
        )
    # among those that are too small the widest group of the last format that runs came nearest
    running = [refusal for refusal in reversed(refused) if refusal.runs]
    nearest = min(running, key=lambda refusal: refusal.over_ratio, default=refused[-1])
    return InfeasibleError(
        f"no group of {names} serves {model.name} as asked: {nearest.why}",
        where=f"the nearest of {len(refused):,} ways" if len(refused) > 1 else "",
        hint=nearest.longer
        or nearest.hint
        or f"a longer {option('ttft')} or {option('tpot')}, a narrower {option('precision')}, a chip with more memory",
    )
