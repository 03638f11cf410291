"""Random questions, drawn from the declarations: a verb of the table, some of the inputs it takes, values by their kinds.

A newly declared input is drawn without a word here, unless its kind is new or its values must be chosen to be cheap.
"""

# ruff: noqa: E501  # tables of what may be said

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from datahall.answers.ask import form_of
from datahall.answers.verbs import VERBS
from datahall.catalog import load
from datahall.cli.names import names
from datahall.errors import DatahallError
from datahall.scenario.field import Field
from datahall.scenario.form import Form
from datahall.scenario.kinds import (
    Choice,
    Count,
    Flag,
    Kind,
    Listed,
    Mapped,
    Name,
    Numbers,
    Percentile,
    Quantity,
    Rate,
    Reading,
    Share,
)
from datahall.scenario.sections.deployment import PrecisionName
from datahall.scenario.sections.failure import FABRIC_PARTS
from datahall.scenario.sections.lengths import LengthsKind
from datahall.scenario.sections.traffic import PresetName, Regions
from datahall.scenario.sections.training import Split
from datahall.scenario.sections.views import Day, PeakFormat

# verbs that are not asked here, with why
NOT_ASKED = {
    "validate": "its questions are rows of measurements, which tests/validation predicts",
    "check": "what it is asked about is files",
    "catalog add": "it writes into the user's folder",
    "explain": "a term, or any of the others with its chain",
}
FILES = Path(__file__).parent / "files"

# what a question says beside what it must, so that it is small or has an answer at all
ALWAYS = {
    "plan serve": ("rate", "chips"),
    "plan train": ("chips", "global_batch"),
    "show fabric": ("chips",),
    "show memory": ("chips",),
    "show collective": ("size", "chips"),
    "simulate serve": ("rate", "requests"),
    "simulate train": ("global_batch",),
    "simulate fabric": ("chips", "job"),
}
# tables that flags give whole: what one says always
ROWS: dict[str, dict[str, dict[str, Any]]] = {
    "simulate serve": {
        "region": {"name": "eu"},
        "cache": {"rate": 4, "process": 100, "shared": 50, "semantic": "5 %"},
        "failure": {"replicas": "0", "start": "1s", "duration": "2s"},
    },
    "simulate fabric": {
        "job": {"size": "1MB", "ranks": "0-15"},
        "background": {"size": "1MB", "hosts": "0-7"},
        "failure": {"nics": "3", "start": "10us", "duration": "50us"},
        "stall": {"start": "10us", "duration": "20us"},
    },
    **{
        verb: {"failure": {"nics": "0", "left": "50 %"}}
        for verb in ("show collective", "plan serve", "plan train", "simulate train", "show techniques")
    },
}
# values that are cheap, or that mean something, where the kind alone does not know; by verb or for all
CHEAP: dict[str, Sequence[Any]] = {
    "model": ("llama-3.1-8b", "qwen3-8b", "mistral-7b"),
    "chip": ("h100-sxm", "h200-sxm", "b200"),
    "chips": (["h200-sxm"], ["h100-sxm", "h200-sxm"], "b200"),
    "topologies": (["fat-tree"], ["tree", "dragonfly"], "torus"),
    "on": ("fat-tree", "tree", "rail-optimised"),
    "tp": (1, 2, "4"),
    "pp": (1, 2),
    "ep": (1,),
    "cp": (1, 2),
    "dp": (1, 2),
    "etp": (0, 1),
    "shard": (0, 2),
    "max_context": ("8k", 16384),
    "token_budget": ("2k", 4096),
    "block_tokens": (16, 32),
    "max_sequences": (64, "128"),
    "memory_fraction": ("85 %", 0.9),
    "reserved": ("2 GB",),
    "kv_blocks": (20_000,),
    "resident_adapters": (1,),
    "adapters": (2, 4),
    "host_step": ("1ms", "200us"),
    "host_sequence": ("5us",),
    "wait": ("10ms",),
    "first_token": ("5ms",),
    "ttft": ("2s", "800 ms"),
    "tpot": ("60ms", "0.1 s"),
    "duration": ("60s",),
    "warmup": ("1s", 0),
    "until": ("30s",),
    "requests": (150, "200"),
    "users": (4, 8),
    "rate": (2, "4/s", 1.5),
    "system": (100, "200"),
    "documents": (10,),
    "document": (100,),
    "retrieved": (1, 2),
    "turns": (2, 1.5),
    "think": ("1 s", "500ms"),
    "opening": (200, {"shape": "uniform", "low": 100, "high": 300}),
    "hourly": ([1.0] * 23 + [0.5],),
    "autoscale": ("1..2", "1..3:8"),
    "in_region": ("eu",),
    "name": ("eu",),
    "traffic_name": ("chat",),
    "claim": ("memory=80GB", "memory_bandwidth=3.35 TB/s"),
    "vendor": ("nvidia", "amd"),
    "family": ("llama", "qwen"),
    "hosted": ("gpt-4o",),
    "text": (["nvlink"], ["h100", "sxm"]),
    "switch": ("quantum-2", "spectrum-4"),
    "server": ("dgx-h100",),
    "sides": ("4x4x4",),
    "radix": (64, 128),
    "domain": (8, "4"),
    "nic": ("200 Gb/s", "50 GB/s"),
    "bandwidth": ("50 GB/s",),
    "oversubscription": ("1:1", "2:1"),
    "seq": ("4k", 2048),
    "global_batch": (64, "128"),
    "micro_batch": (1,),
    "vpp": (2,),
    "zero": (0, 1, 2, 3),
    "split": ("16 16",),
    "tokens": ("2e11", "1T"),
    "deadline": ("90d",),
    "imbalance": (1.5,),
    "experts": (16,),
    "hidden": (4096,),
    "topk": (2,),
    "working_set": ("2 GB", "30MB"),
    "context": ("4k", 2048),
    "batch": (1, "8"),
    "as_of": ("2026-11-15",),
    "max_age": ("400 days",),
    "jitter": ("1 %", 0.02),
    "watchdog": ("50ms",),
    "paths": (1, 4),
    "version": ("2.27", "2.20"),
    "draft": ("ngram",),
    "num_draft": (2,),
    "framework": ("nemo", "fsdp"),
    "trace": (str(FILES / "requests.jsonl"),),
    "layout": (str(FILES / "megatron.args"),),
    "hash_block": (256,),
    "speed": (2, 0.5),
    "first": (5, 8),
    "modules": (["core_attn"], ["layernorm", "mlp"]),
}  # fmt: skip
OF_VERB: dict[tuple[str, str], Sequence[Any]] = {
    ("show fabric", "chips"): (64, 512, "1024"),
    ("plan serve", "batching"): ("continuous",),
    ("show techniques", "batching"): ("continuous",),
    ("plan serve", "engine"): ("vllm", "sglang"),
    ("show techniques", "engine"): ("vllm", "sglang"),
    ("show collective", "algorithm"): ("ring", "tree"),
    ("show collective", "collective"): ("all-reduce",),
    ("show collective", "chips"): (64, "144"),
    ("show collective", "tokens"): (4096, "8k"),
    ("show memory", "chips"): (8, "16"),
    ("plan train", "chips"): (32, "64"),
    ("simulate train", "chips"): (8, 16),
    ("simulate fabric", "chips"): (32, 64),
    ("simulate train", "global_batch"): (32, "64"),
    ("simulate train", "context"): ("ring", "all-to-all"),
    ("show memory", "context"): ("ring", "all-to-all"),
    ("catalog prices", "chip"): ("h100", "b200"),
    ("simulate serve", "tp"): (1, 2),
    ("simulate fabric", "until"): ("200us",),
    ("simulate fabric", "start"): ("10us",),
    ("simulate fabric", "duration"): ("50us",),
    ("simulate fabric", "size"): ("1MB", "200 kB"),
    ("simulate fabric", "repeat"): (1, 2),
    ("simulate fabric", "pause"): ("1us", "20 us"),
    ("simulate fabric", "overhead"): ("1us",),
    ("simulate fabric", "algorithm"): ("ring",),
    ("simulate fabric", "target"): (0, 3),
    ("simulate fabric", "ranks"): ("0-15", [0, 1, 2, 3], 8),
    ("simulate fabric", "hosts"): ("0-7", 8),
    ("simulate fabric", "cubes"): ("0",),
    ("simulate fabric", "chip"): ("h100-sxm",),
    ("simulate serve", "region"): ("eu",),
    ("simulate serve", "to"): ({"eu": "0 s"},),
    ("simulate serve", "start"): ("1s", "500ms"),
    ("simulate serve", "duration"): ("60s", "1 s"),
    ("simulate serve", "rate"): (4, "8/s"),
}
# what a room asks for beside an input, which its declaration cannot say; None takes something away
PARTS = ("0", 0, [0])  # of a fabric: there is one of everything
COMPANY: dict[str, dict[str, Any]] = {
    "wait": {"batching": "dynamic"},
    "level": {"algorithm": None},
    **{name: {"topologies": ["fat-tree"], "sides": None} for name in ("radix", "switch", "server")},
    "expert_exchange": {"model": "qwen3-30b-a3b"},
    "routing_skew": {"model": "qwen3-30b-a3b"},
    "imbalance": {"model": "qwen3-30b-a3b", "chips": 32},
    "deadline": {"chips": None},
    "sides": {
        "on": "torus",
        "topologies": ["torus"],
        "chips": 64,
        "nic": None,
        **dict.fromkeys(
            ("tiers", "oversubscription", "radix", "switch", "domain", "server", "chip", "failure")
        ),
    },
    "tiers": {"on": "fat-tree", "topologies": ["fat-tree"], "tiers": 2, "sides": None},
    "oversubscription": {
        "on": "fat-tree",
        "topologies": ["fat-tree"],
        "chips": 1024,
        "global_batch": 1024,
        **dict.fromkeys(("sides", "tiers")),
    },
    "schedule": {"pp": 2},
    "vpp": {"pp": 2, "schedule": "interleaved"},
    "split": {"pp": 2, "model": "llama-3.1-8b"},
    "context": {"cp": 2},
    "handoff": {"role": None, "disaggregated": "prefill=1xh200,decode=2xh200"},
    "role": {"role": "both"},
    "loss": {"transport": "lossy"},
    "experts": {
        "collective": "all-to-all",
        "experts": 16,
        "chips": 16,
        "tokens": 4096,
        "topk": 2,
        "hidden": 4096,
    },
    "in_region": {"region": [{"name": "eu"}], "from_region": "eu"},
    "from_region": {"region": [{"name": "eu"}], "in_region": "eu"},
    "failure": {"on": "fat-tree", "replicas": 4, "sides": None, "algorithm": None},
    "region": {"in_region": "eu", "from_region": "eu"},
    "busy": {"lull": "1 s"},
    "lull": {"busy": "1 s"},
    "think": {"turns": 2},
    "trace": {"rate": None, "requests": None, "hash_block": 256},
    **{
        name: {"rate": None, "trace": str(FILES / "requests.jsonl")}
        for name in ("speed", "sort", "first", "hash_block")
    },
}
BY_UNIT: dict[str, Sequence[Any]] = {
    "s": ("20ms", "0.5 s", "2s", "1 min"),
    "bytes": ("64MB", "1 GB", "20 GiB"),
    "bytes_per_s": ("50 GB/s", "400 Gb/s"),
    "ratio": (0.5, 1, "1.5", "2x"),
    "tokens": (1000, "2k"),
    "count": (1, 2, "4"),
}
BY_KIND: dict[type[Kind], Sequence[Any]] = {
    Percentile: (50, "P95", "99 %", 0.9),
    Rate: (2, "4/s", 1.5),
    Share: ("25 %", 0.3, "5 %", "100 %"),
    Count: (1, 2, "4", 8, "1k", 0),
    Numbers: ("0", [0, 1], "0-2"),
    Mapped: ({"us": "40ms"},),
    LengthsKind: (300, "200", {"shape": "lognormal", "mean": 400, "p95": 900}),
    PrecisionName: ("bf16", "fp8"),
    PeakFormat: ("fp8", "bf16"),
    PresetName: ("sharegpt", "lmsys-chat"),
    Regions: ("eu", {"eu": 1.0}),
    Split: ("16 16", [16, 16]),
    Day: ("2026-11-15",),
}


MOST_AT_ONCE = {
    "plan serve": 8,
    "show techniques": 10,
    "plan train": 6,
}  # inputs of a question that takes seconds


class Asked(NamedTuple):
    """A question: inputs by name, and rows of tables that flags give whole, in the types that a file would have."""

    verb: str
    said: dict[str, Any]
    tables: dict[str, list[dict[str, Any]]]


def value_of(field: Field, verb: str, draw: random.Random) -> Any:
    """A value that the input may have."""
    kind, name = field.kind, field.name
    if isinstance(kind, Flag):
        return field.default is False or draw.random() < 0.5  # nobody types the false that it is anyway
    known = OF_VERB.get((verb, name), CHEAP.get(name, ()))
    return draw.choice(legal(kind, known) or legal(kind, samples(kind)))


def legal(kind: Kind, values: Sequence[Any]) -> list[Any]:
    """Those that the declaration allows."""
    found = []
    for value in values:
        try:
            kind.read(value, Reading(catalog=load()))
        except DatahallError:
            continue
        found.append(value)
    return found


def samples(kind: Kind) -> Sequence[Any]:
    """Some values of a kind."""
    if type(kind) in BY_KIND:
        return BY_KIND[type(kind)]
    if isinstance(kind, Choice):
        return kind.options
    if isinstance(kind, Name):
        return sorted(names(kind))
    if isinstance(kind, Listed):
        return [[one] for one in samples(kind.of)]
    if isinstance(kind, Quantity):
        return BY_UNIT[kind.unit]
    assert kind.sample, f"say in BY_KIND how to draw a {type(kind).__name__}"
    return [kind.sample.strip('"')]


def inputs(form: Form) -> list[str]:
    """Every declared input of a verb: by name, and table.key where flags give a table whole."""
    tables = [
        f"{concept.name}.{field.key}" for concept in form.tables for field in form.sections[concept.name]
    ]
    return [*form.fields, *tables]


def questions(verb: str, draw: random.Random, least: int) -> Iterator[Asked]:
    """Questions of a verb that together say each of its inputs, in random company."""
    form = form_of(verb)
    fixed = {*form.required, *ALWAYS.get(verb, ())}
    waiting = [name for name in inputs(form) if name not in fixed]
    draw.shuffle(waiting)
    num, most = 0, MOST_AT_ONCE.get(verb, 4)
    while waiting or num < (1 if verb in MOST_AT_ONCE else least):
        some = [waiting.pop() for _ in range(min(draw.randint(1, most), len(waiting)))]
        asked = question(form, some, draw)
        yield asked
        num += 1
        lost = set(some) - said_in(asked)  # what cannot stand beside another of them is said alone
        waiting = [*waiting, *sorted(lost)] if len(some) > 1 else waiting


def said_in(asked: Asked) -> set[str]:
    """The inputs that a question says."""
    rows = {f"{table}.{key}" for table, rows in asked.tables.items() for row in rows for key in row}
    return {*asked.said, *rows}


def question(form: Form, names: Sequence[str], draw: random.Random) -> Asked:
    """A question that says some inputs, and what must stand beside them."""
    asked = Asked(form.verb, {}, {})
    for name in (*form.required, *ALWAYS.get(form.verb, ()), *names):
        say(form, asked, name, draw)
    return asked


def say(form: Form, asked: Asked, name: str, draw: random.Random, value: Any = None) -> None:
    """Add an input with what it needs, and take away what it cannot stand beside."""
    table, _, key = name.partition(".")
    if table in {concept.name for concept in form.tables}:
        say_in_table(form, asked, table, key, draw)
    else:
        field = form.fields[name]
        apart = {
            *field.kind.against,
            *(other for other in asked.said if name in form.fields[other].kind.against),
        }
        for other in apart:
            asked.said.pop(other, None)
        asked.said[name] = value_of(field, form.verb, draw) if value is None else value
        say_needed(form, asked, field, draw)
    for other, wanted in COMPANY.get(table, {}).items():
        if wanted is None:
            asked.said.pop(other, None)
            asked.tables.pop(other, None)
        elif other in form.fields and other != name and legal(form.fields[other].kind, [wanted]):
            asked.said[other] = wanted
        elif other in {concept.name for concept in form.tables}:
            asked.tables.setdefault(other, wanted)


def say_needed(form: Form, asked: Asked, field: Field, draw: random.Random) -> None:
    taken = {*form.fields, *(concept.name for concept in form.tables)}
    needs = [need.partition("=") for need in field.kind.needs if need.partition("=")[0] in taken]
    met = [other for other, _, wanted in needs if other in {*asked.said, *asked.tables} and not wanted]
    if needs and not met:
        other, _, wanted = needs[0]
        say(form, asked, other, draw, wanted or None)


def say_in_table(form: Form, asked: Asked, table: str, key: str, draw: random.Random) -> None:
    row = asked.tables.setdefault(table, [dict(ROWS[form.verb][table])])[0]
    if not key:
        return
    field = form.of(table)[key]
    for other in {*field.kind.against, *(one for one in row if key in form.of(table)[one].kind.against)}:
        row.pop(other, None)
    needs = [need.partition("=") for need in field.kind.needs]
    if needs and not any(other in row and not wanted for other, _, wanted in needs):
        other, _, wanted = needs[0]
        row[other] = wanted or value_of(form.of(table)[other], form.verb, draw)
    if table == "failure" and key in FABRIC_PARTS:
        row[key] = draw.choice(PARTS)
        row["left"] = "50 %"
        for other in ("start", "duration") if form.verb == "simulate serve" else ():
            row.pop(other, None)
        return
    row[key] = value_of(field, form.verb, draw)


def all_questions(seed: int, least: int) -> list[Asked]:
    """Questions of every verb; the same for one seed."""
    draw = random.Random(seed)
    return [asked for verb in asked_verbs() for asked in questions(verb, draw, least)]


def asked_verbs() -> list[str]:
    """The verbs that are asked: those that a file may ask, and that take anything."""
    return [verb.name for verb in VERBS if verb.name not in NOT_ASKED and verb.takes]
