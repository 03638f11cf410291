"""What says how much a collective moves, refused where it is too little or too much, before anything is loaded."""

from __future__ import annotations

from datahall.counted import counted
from datahall.errors import ScenarioError, option
from datahall.fabric.collectives.algorithms.moves import MOVES
from datahall.scenario.sections.fabric import CollectiveCall
from datahall.scenario.words import Collective


def check_size(call: CollectiveCall, collective: Collective) -> None:
    """Refuse an array that nobody says the size of."""
    if MOVES[collective].is_sized and call.experts is None and call.size_bytes is None:
        raise ScenarioError("how large is the array?", field="size", hint=f"e.g. {option('size', '1GB')}")


def check_dispatch(call: CollectiveCall, collective: Collective, num_chips: int) -> None:
    """Refuse experts that no all-to-all is sized by; `num_chips` 0: nobody says how many."""
    if call.experts is None:
        return
    if collective != "all-to-all":
        raise ScenarioError(
            f"{option('experts')} sizes an all-to-all, not {collective}",
            field="experts",
            hint=f"give a {option('size')} instead",
        )
    numbers = {"tokens": call.tokens, "topk": call.topk, "hidden": call.hidden}
    missing = [name for name, value in numbers.items() if value is None]
    if missing:
        raise ScenarioError(
            f"{', '.join(map(option, missing))} {'is' if len(missing) == 1 else 'are'} missing",
            field=missing[0],
            hint=f"e.g. {option('tokens', '2^20')} {option('topk', 2)} {option('hidden', 4096)}",
        )
    if call.topk is not None and call.topk > call.experts:
        raise ScenarioError(
            f"{option('topk', call.topk)} of {counted(call.experts, 'expert')}",
            field="topk",
            hint=f"at most {option('topk', call.experts)}",
        )
    if num_chips not in (0, call.experts):
        raise ScenarioError(
            f"{counted(call.experts, 'expert')} on {counted(num_chips, 'chip')}",
            field="chips",
            hint=f"one expert a chip: {option('chips', call.experts)}",
        )
