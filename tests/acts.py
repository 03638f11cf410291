"""Whether an input does anything: a sample of each, what it stands beside, and what an answer says of it."""

from __future__ import annotations

from typing import Any

from datahall.answer import Answer
from datahall.answers.ask import ask
from datahall.answers.reply import answer_of
from datahall.catalog import Catalog
from datahall.errors import DatahallError

SHELF = Catalog(user=False)
# a value of each input that nothing else here has, by the room that it is of
TRAINED: dict[str, Any] = {
    "model": "llama-3.1-70b", "seq": 4096, "global_batch": 128, "precision": "fp8", "framework": "fsdp",
    "state": "pure-bf16", "imbalance": 1.5, "chips": 32, "chip": "h200", "tp": 2, "pp": 8, "vpp": 2, "cp": 4, "ep": 4,
    "dp": 2, "zero": 2, "micro_batch": 2, "recompute": "full", "schedule": "zb", "etp": 2, "shard": 2,
    "modules": "layernorm", "context_exchange": "all-to-all", "split": "15 17", "offload": "optimizer",
    "compress": "fp8", "slow_hosts": "40 %", "slow_by": "30 %", "jitter": "2 %", "seed": 7, "tokens": "2T",
    "deadline": "100d", "memory_margin": "60 %", "lora": 16, "lora_targets": "attention", "quantised": True,
    "failure": "links=0", "on": "tree", "domain": 4, "nic": "50 Gb/s",
    "oversubscription": "31:1", "sites": 4, "wan": "1 GB/s", "round_trip": "3s", "local_steps": 3,
}  # fmt: skip
OPERATED: dict[str, Any] = {
    "failures_like": "rsc-1", "failure_rate": "0.1/node-day", "job_failures": "5/day", "shock_rate": "0.1/day",
    "shock_nodes": 16, "node_age": "5d", "spares_enough": "99.99 %", "storage": "1 GB/s", "tier": "peer,remote",
    "interval": "3min", "blocking": "60s", "synchronous": True, "save": "60s", "copy": "10s", "detect": "1h",
    "reschedule": "1h", "warm_up": "1h", "restart": "3h", "spares": 0, "hot_spares": True, "planned_every": "2d",
    "planned": "1h", "elastic": "linear", "stall": "60s", "sdc": "replay", "sdc_every": 5, "preempted_every": "90d",
    "capacity_back": "5h", "notice": "10min", "days": 30, "ettr": "99.9 %", "runs": 41,
}  # fmt: skip
SITED: dict[str, Any] = {
    "facility": "survey-average", "pue": 1.5, "storage_share": "10 %", "cooling": "liquid", "rack_power": "200 kW",
    "grid": "sweden", "coherence": "20 %", "time_constant": "1s", "site_limit": "100 kW", "swing_limit": "1 kW",
    "ramp_limit": "1 kW/min", "power_floor": "80 %", "ramp_cap": "1 kW/s", "capacitors": "60 J",
    "supercapacitors": 3, "battery": 1, "battery_type": "supercapacitor-48v",
}  # fmt: skip
BOUGHT: dict[str, Any] = {
    "objective": "energy", "budget": 1e9, "buy": ["rent"], "provider": ["lambda"], "price": 7.0, "spot_price": 0.5,
    "as_of": "2025-06-01", "owner": "hyperscaler", "capex": 90_000.0, "interest": "20 %", "life": "9y",
    "residual": "40 %", "depreciation": "market", "hardware_age": "2y", "colo": "300USD/kW-month",
    "energy_price": "0.5USD/kWh", "repair_cost": "9 %", "staff": 9e4, "used": "50 %",
    "available": "a100-80gb=16",
    "country": "germany", "without": ["samsung"], "licensed": True, "regions": ["us-east-1"], "residency": ["japan"],
}  # fmt: skip
VALUES: dict[str, Any] = {**TRAINED, **OPERATED, **SITED, **BOUGHT}


def answered(verb: str, given: dict[str, Any]) -> Answer | None:
    """The answer, or nothing where the question is refused."""
    try:
        return answer_of(ask(verb, given, catalog=SHELF))
    except DatahallError:
        return None


def speaks_of(note: str, name: str) -> bool:
    """Whether a note says that an input of that name does nothing, alone or with others."""
    start, said, _ = note.partition(" nothing here: ")
    named = start.removesuffix(" does").removesuffix(" do").replace(" and ", ", ").split(", ")
    return (bool(said) and name in named) or note.startswith(f"the {name} changes nothing")
