"""Results as a person calls them, and how far apart they are in words."""

from __future__ import annotations

from datahall.answer import Quantity
from datahall.units import fmt, unit_of

# results whose key without its unit does not say what they are
CALLED = {
    "decode_pass_s": "time of a decode step",
    "prefill_pass_s": "time of a prefill",
    "day_j": "energy of a day",
    "day_kg": "carbon of a day",
    "duration_s": "time",
    "elapsed_s": "time with interruptions",
    "ettr_fraction": "effective training time",
    "checkpoint_ettr_fraction": "effective training time, planned stops aside",
    "lowest_usd_per_hour": "lowest price on demand",
    "pass_s": "time of a pass",
    "peak_w": "peak power",
    "price_usd": "price to buy",
    "provisioned_w": "provisioned power",
    "rest_w": "power at rest",
    "run_j": "energy of the run",
    "run_kg": "carbon of the run",
    "site_w": "site power",
    "step_s": "step time",
    "swing_w": "power swing",
    "token_j": "energy of a token",
    "tokens_per_s": "tokens/s",
}
# what units say that stems leave out
UNITS = {
    "bytes_per_s": "bandwidth",
    "flop_per_j": "a joule",
    "j_per_token": "energy of a token",
    "per_s": "a second",
    "tokens": "tokens",
    "tokens_per_s": "tokens/s",
    "usd_per_hour": "price",
}
ACRONYMS = {
    "mfu", "mttf", "ttft", "tpot", "itl", "e2e", "tp", "pp", "dp", "ep", "cp", "l1", "l2", "p50", "p90", "p95", "p99",
}  # fmt: skip


def spoken(key: str) -> str:
    """A result by its key.

    >>> spoken("step_s"), spoken("num_chips"), spoken("ttft_p95_s"), spoken("memory_bytes_per_s")
    ('step time', 'chips', 'TTFT P95', 'memory bandwidth')
    """
    if key in CALLED:
        return CALLED[key]
    unit = unit_of(key)
    words = key.removesuffix(f"_{unit}").removeprefix("num_").split("_")
    said = " ".join(word.upper() if word in ACRONYMS else word for word in words)
    return " ".join(filter(None, (said, UNITS.get(unit, ""))))


def shown(value: Quantity) -> str:
    """A number in a sentence."""
    return fmt(value.value, value.unit)


def percent(share: float) -> str:
    """By how much, without its sign: less and more are said in words.

    >>> percent(-0.123), percent(0.0004), percent(12.3)
    ('12.3 %', '0.04 %', '1,230 %')
    """
    return fmt(abs(share), "fraction") if abs(share) >= 0.01 else f"{100 * abs(share):.2f} %"
