"""What a chip does with its power: operations of a joule at its peaks, joules of a token at its speed."""

from __future__ import annotations

from collections.abc import Mapping

from datahall.answer import Cell

RATE, SPEED = "_flop_per_s", "_tokens_per_s"


def per_watt(results: Mapping[str, Cell], power_w: float | None) -> dict[str, Cell]:
    """For each dense peak the operations of a joule, and for each rate of tokens the joules of one, at full power.

    >>> per_watt({"peak_bf16_flop_per_s": 1e15, "decode_tokens_per_s": 2000.0}, 500.0)
    {'peak_bf16_flop_per_j': 2000000000000.0, 'decode_j_per_token': 0.25}
    """
    found: dict[str, Cell] = {}
    for key, value in results.items() if power_w else ():
        assert power_w
        if not isinstance(value, int | float) or isinstance(value, bool) or not value:
            continue
        if key.startswith("peak_") and key.endswith(RATE):
            found[f"{key.removesuffix(RATE)}_flop_per_j"] = value / power_w
        elif key.endswith(SPEED):
            found[f"{key.removesuffix(SPEED)}_j_per_token"] = power_w / value
    return found
