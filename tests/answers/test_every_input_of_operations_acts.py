"""Each input of a verb of operations or of cost changes what is answered, is refused, or is said to do nothing."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import pytest
from tests.acts import VALUES, answered, speaks_of

from datahall.answer import Answer
from datahall.answers.ask import form_of
from datahall.answers.verbs import VERBS

FILES = Path(__file__).parent / "files"
SMALL = {"model": "llama-3.1-8b", "chips": 256, "global_batch": 256, "seq": 2048}
EXPERTS = {"model": "qwen3-30b-a3b", "chips": 64, "ep": 8, "global_batch": 64, "seq": 2048}
PIPELINE = {"model": "llama-3.1-8b", "chips": 64, "pp": 4, "tp": 1, "global_batch": 64, "seq": 2048}
LAID: dict[str, dict[str, Any]] = {
    "searched": SMALL,
    "pipeline": PIPELINE,
    "two stages": {**PIPELINE, "pp": 2},
    "experts": EXPERTS,
    "contexts": {**PIPELINE, "pp": 1, "tp": 2, "cp": 2},
    "sharded": {**PIPELINE, "pp": 1, "zero": 3},
    "with peers": {**SMALL, "tier": "peer,remote"},
    "narrow": {**PIPELINE, "chips": 512, "pp": 1, "zero": 3, "global_batch": 512, "on": "fat-tree"},
}
WEEKS = {"days": 20, "runs": 40}
JOBS = [
    {"chips": 64, "run": "5h", "count": 40, "every": "10min", "network": "30 %", "user": "ada"},
    {"chips": 96, "run": "2h", "count": 10, "every": "30min", "user": "bob"},
    {"chips": 8, "run": "1h", "count": 40, "every": "7min", "user": "cy"},
]
QUEUE = {"chips": 256, "cluster_job": JOBS}
# questions that each input of a verb is put beside, until it acts in one
BASES: dict[str, dict[str, dict[str, Any]]] = {
    "simulate run": {name: {**base, **WEEKS} for name, base in LAID.items()},
    "show checkpoint": LAID,
    "show power": LAID,
    "show datapath": {
        "images": {"workload": "resnet50", "chips": 64, "storage": ["hdd"]},
        "objects": {"workload": "unet3d", "chips": 64, "storage": ["object"], "checkpoint": "1 TB"},
        "text": {"workload": "llama-3.1-8b", "chips": 64, "storage": ["parallel"]},
        "by share": {"workload": "llama-3.1-8b", "chips": 64, "storage": ["parallel"], "mfu": "30 %"},
    },
    "simulate cluster": {
        "one after the other": {**QUEUE, "policy": ["fifo"]},
        "by use": {**QUEUE, "policy": ["fair-share"], "mttf": "20d"},
        "narrow": {**QUEUE, "policy": ["topology"], "on": "fat-tree", "oversubscription": "2:1"},
        "recorded": {"queue": str(FILES / "sacct.txt"), "chips": 64, "policy": ["backfill"]},
    },
    "show cost": {
        "chip": {"priced": "h100-sxm", "chips": 64},
        "owned": {"priced": "h100-sxm", "chips": 64, "own": True},
        "run": {"priced": "llama-3.1-8b", "tokens": "1T", "chips": 64},
        "owned run": {"priced": "llama-3.1-8b", "tokens": "1T", "chips": 64, "own": True},
        "published": {"priced": "llama-3.1-405b"},
    },
}  # fmt: skip
# values of inputs that mean something else to a verb, or that only it has
OF_VERB: dict[str, dict[str, Any]] = {
    "simulate run": {"memory_margin": "85 %", "spares": 1},
    "show checkpoint": {"memory_margin": "85 %", "spares": 1, "tier": "remote"},
    "show datapath": {
        "workload": "cosmoflow", "storage": ["nvme"], "units": 2, "utilisation": "99.9 %", "chips_per_host": 4,
        "batch": 7, "step": "20ms", "mfu": "60 %", "sample": "1 MB", "dataset": "90 TB", "stored_as": "files",
        "columns": "10 %", "shuffle": "random", "readers": 1, "prefetch_depth": 0, "prepare": "100ms", "cores": 3,
        "cache": "100 GB", "keeping": "pinned", "host_memory": "64 GB", "host_nic": "10 MB/s", "away": "60ms",
        "checkpoint": "9 TB", "checkpoint_every": "1min", "replicas": 9, "chips": 512, "chip": "a100-sxm-80gb",
    },
    "simulate cluster": {
        "policy": ["gang"], "first_jobs": 2, "depth": 1, "half_life": "1h", "checkpoint_every": "10min",
        "restart": "1h", "mttf": "10d", "repair": "2h", "chips": 128, "domain": 4, "on": "tree",
        "oversubscription": "4:1", "chip": "gb200", "queue": str(FILES / "sacct.txt"),
        "cluster_job": [{**JOBS[0], "run": "6h"}], "failure": {"domains": "0", "start": "10min", "duration": "5h"},
    },
    "show cost": {
        "priced": "h200-sxm", "own": True, "provider": ["lambda"], "regions": ["us-east-1"], "residency": ["japan"],
        "price": 9.0, "spot_price": 0.5,
        "as_of": "2026-02-01", "predict": True, "chip_hours": 50000, "owner": "hyperscaler", "capex": 90000,
        "interest": "20 %", "life": "2y", "residual": "30 %", "depreciation": "market", "hardware_age": "2y",
        "colo": "300 USD/kW-month", "energy_price": "0.3 USD/kWh", "repair_cost": "20 %", "staff": 90000,
        "used": "10 %", "chips": 512, "chip": "h200-sxm", "preempted_every": "1h", "restart": "1h", "blocking": "600s",
        "tokens": "3T",
    },
}  # fmt: skip
# what an input needs beside it, whatever it is put beside
BESIDE: dict[str, dict[str, Any]] = {
    "shock_nodes": {"shock_rate": "0.1/day"},
    "stall": {"elastic": "linear"},
    "sdc_every": {"sdc": "replay"},
    "capacity_back": {"preempted_every": "20d"},
    "notice": {"preempted_every": "20d"},
    "planned": {"planned_every": "2d"},
    "slow_by": {"slow_hosts": "10 %"},
    "lora_targets": {"lora": 8},
    "quantised": {"lora": 8},
    "compress": {"zero": 2},
    "shard": {"zero": 3},
    "battery_type": {"battery": 2},
    "hardware_age": {"depreciation": "market"},
    "columns": {"stored_as": "columnar"},
    "cores": {"prepare": "1ms"},
    "keeping": {"cache": "100 GB"},
    "dataset": {"cache": "100 GB"},
    "tier": {"interval": None, "blocking": None},
    "dp": {"chips": None, "pp": None, "cp": None, "tp": 8},
    "deadline": {"days": None, "tokens": "100B"},
    "tokens": {"days": None, "tokens": "1T"},
    "spares": {"hot_spares": True, "failure_rate": "0.1/node-day"},
}
ELSEWHERE = {
    "name",  # what to call the scenario
    "layout",  # a file: its words are inputs of their own
    "file",
}
# that no question here is answered with another value of, with why
NEVER: dict[tuple[str, str], str] = {
    **{
        (verb, "dp"): "as many as the chips leave: another number is refused"
        for verb in ("simulate run", "show checkpoint", "show power")
    },
    ("simulate cluster", "queue"): "the jobs themselves, of which two files are not put side by side here",
}


def value_of(verb: str, name: str) -> Any:
    return OF_VERB.get(verb, {}).get(name, VALUES.get(name))


def inputs(verb: str) -> list[str]:
    form = form_of(verb)
    return [name for name in (*form.fields, *(one.name for one in form.tables)) if name not in ELSEWHERE]


@cache
def usual(verb: str, base: str, beside: str) -> Answer | None:
    return answered(verb, question(verb, base, beside))


def question(verb: str, base: str, beside: str) -> dict[str, Any]:
    """A question with what an input needs; what a verb does not take falls away."""
    known = form_of(verb)
    taken = {*known.fields, *(one.name for one in known.tables)}
    both = {**BASES[verb][base], **BESIDE.get(beside, {})}
    return {name: value for name, value in both.items() if value is not None and name in taken}


def said(answer: Answer) -> tuple[object, ...]:
    """All of an answer but what was asked, what is noted, and what follows."""
    return (answer.verdict, answer.headline, answer.results, answer.tables, answer.charts)


CASES = [pytest.param(verb, name, id=f"{verb} {name}") for verb in BASES for name in inputs(verb)]


def test_every_input_has_a_sample() -> None:
    assert [(verb, name) for verb in BASES for name in inputs(verb) if value_of(verb, name) is None] == []


@pytest.mark.parametrize(("verb", "name"), CASES)
def test_an_input_acts_or_is_refused_or_said_to_do_nothing(verb: str, name: str) -> None:
    seen = 0
    needs = name if name in BESIDE else ""
    for base in BASES[verb]:
        before = usual(verb, base, needs)
        after = answered(verb, {**question(verb, base, needs), name: value_of(verb, name)})
        if before is None or after is None or BASES[verb][base].get(name) == value_of(verb, name):
            continue
        same = said(before) == said(after)
        noted = any(speaks_of(note, name) for note in after.notes)
        assert not same or noted, f"{name} changes nothing of {base}, and nobody says so"
        if not same:
            seen += 1
            break
    assert seen or (verb, name) in NEVER, f"{name} never acts"


def test_what_never_acts_is_an_input() -> None:
    assert [one for one in NEVER if one[1] not in inputs(one[0])] == []


# what a question that follows another has nothing to say with, by the verbs of both; all else that was given stays
SITE = {
    "facility", "pue", "storage_share", "cooling", "rack_power", "grid", "coherence", "time_constant", "site_limit",
    "swing_limit", "ramp_limit", "power_floor", "ramp_cap", "capacitors", "supercapacitors", "battery", "battery_type",
}  # fmt: skip
FALLS_AWAY: dict[tuple[str, str], set[str]] = {
    # rates of the mean of the run stand for its age; the others leave its checkpoints as they are
    ("simulate run", "show checkpoint"): {
        "name", "seed", "tokens", "deadline", "days", "runs", "ettr", "node_age", "spares_enough", "planned_every",
        "planned", "stall", "sdc", "sdc_every", "capacity_back", "notice", "slow_hosts", "slow_by", "jitter",
    },
    ("simulate run", "validate"): set(form_of("simulate run").fields),
    ("show checkpoint", "simulate run"): set(),
    ("show power", "simulate train"): SITE | {"tokens"},
    ("show power", "validate"): set(form_of("show power").fields),
    ("show datapath", "validate"): set(form_of("show datapath").fields),
    ("simulate cluster", "validate"): set(form_of("simulate cluster").fields),
}  # fmt: skip


def followed_by(verb: str) -> set[str]:
    """Other verbs that the answers to its questions offer."""
    names = {one.name for one in VERBS}
    found = set()
    for base in BASES[verb]:
        answer = usual(verb, base, "")
        for command in answer.next_commands if answer is not None else ():
            words = command.removeprefix("datahall ").split()
            found |= {name for name in (words[0], " ".join(words[:2])) if name in names}
    return found - {verb, "explain"}


@pytest.mark.parametrize(
    "verb", ["simulate run", "show checkpoint", "show power", "show datapath", "simulate cluster"]
)
def test_what_follows_keeps_what_was_given(verb: str) -> None:
    for other in sorted(followed_by(verb)):
        lost = set(form_of(verb).fields) - set(form_of(other).fields)
        assert lost == FALLS_AWAY[verb, other] - set(form_of(other).fields), other
