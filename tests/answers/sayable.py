"""What random questions may say: values that are cheap or mean something, and the company that an input needs."""

# tables

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from datahall.scenario.kinds import Count, Kind, Mapped, Numbers, Percentile, Rate, Share
from datahall.scenario.kinds.formats import PeakFormat, PrecisionName
from datahall.scenario.sections.lengths import LengthsKind
from datahall.scenario.sections.traffic import PresetName, Regions
from datahall.scenario.sections.training import Split
from datahall.scenario.sections.views import Day

# verbs that are not asked here, with why
NOT_ASKED = {
    "validate": "its questions are rows of measurements, which tests/validation predicts",
    "check": "what it is asked about is files",
    "catalog add": "it writes into the user's folder",
    "explain": "a term, or any of the others with its chain",
}
FILES = Path(__file__).parent / "files"

# inputs that no question of a verb has an answer with, with why: asked alone, so that nothing else is refused with them
_CUT_OFF = "a replica's chips are whole or gone: one with slow scale-up links is not modelled"
_TORUS = "a replica whose chips are wired to their neighbours only is not modelled"
REFUSED: dict[tuple[str, str], str] = {
    **{
        (verb, f"failure.{part}"): why
        for verb in ("plan serve", "show techniques", "simulate serve")
        for part, why in (("chips", _CUT_OFF), ("domains", _CUT_OFF), ("cubes", _TORUS))
    },
}

# what a question says beside what it must, so that it is small or has an answer at all
ALWAYS = {
    "plan serve": ("rate", "chips"),
    "plan train": ("chips", "global_batch"),
    "show fabric": ("chips",),
    "show memory": ("chips",),
    "show transport": ("chips",),
    "show collective": ("size", "chips"),
    "simulate serve": ("rate", "requests"),
    "simulate train": ("chips", "global_batch"),
    "simulate fabric": ("chips", "job"),
}
# of which one must stand
ONE_OF = {"simulate serve": ("rate", "users", "trace"), "plan serve": ("rate", "users")}
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
    "transports": (["roce"], ["tcp", "spectrum-x"], "infiniband"),
    "senders": (4, "8"),
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
    "tiers": (2,),
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
    "modules": (["core_attn"], ["layernorm"]),
}  # fmt: skip
OF_VERB: dict[tuple[str, str], Sequence[Any]] = {
    ("show fabric", "chips"): (64, 512, "1024"),
    ("show transport", "chips"): (64, "128"),
    ("show transport", "loss"): ("0.01 %", 1e-5),
    ("show transport", "domain"): (8, "4"),
    ("plan serve", "engine"): ("vllm", "sglang"),
    ("show techniques", "engine"): ("vllm", "sglang"),
    ("show collective", "algorithm"): ("ring", "tree"),
    ("show collective", "level"): ("datasheet", "family"),
    ("show collective", "collective"): ("all-reduce",),
    ("show collective", "chips"): (64, "144"),
    ("show collective", "tokens"): (4096, "8k"),
    ("show memory", "chips"): (8, "16"),
    ("plan train", "chips"): (32, "64"),
    ("simulate train", "chips"): (8, 16),
    ("simulate fabric", "chips"): (32, 64),
    ("simulate train", "global_batch"): (32, "64"),
    ("simulate train", "context_exchange"): ("ring", "all-to-all"),
    ("show memory", "context_exchange"): ("ring", "all-to-all"),
    ("catalog prices", "chip"): ("h100", "b200"),
    ("show memory", "dp"): (8,),
    ("simulate train", "dp"): (8,),
    ("show memory", "zero"): (1, 2, 3),
    ("simulate train", "zero"): (1, 2, 3),
    ("show memory", "schedule"): ("1f1b", "gpipe"),
    ("simulate train", "schedule"): ("1f1b", "gpipe"),
    ("simulate serve", "tp"): (1, 2),
    ("simulate serve", "role"): ("both",),
    ("simulate serve", "replicas"): (1, [0, 1]),
    ("simulate fabric", "collective"): ("all-reduce", "all-gather", "all-to-all"),
    ("simulate fabric", "check_with"): ("closed-form", "full"),
    ("simulate fabric", "until"): ("200us",),
    ("simulate fabric", "start"): ("10us",),
    ("simulate fabric", "duration"): ("50us",),
    ("simulate fabric", "size"): ("1MB", "200 kB"),
    ("simulate fabric", "repeat"): (2, 3),
    ("simulate fabric", "pause"): ("1us", "20 us"),
    ("simulate fabric", "overhead"): ("1us",),
    ("simulate fabric", "algorithm"): ("ring",),
    ("simulate fabric", "target"): (0, 3),
    ("simulate fabric", "ranks"): ("0-15", [0, 1, 2, 3], 8),
    ("simulate fabric", "hosts"): ("0-7", 8),
    ("simulate fabric", "cubes"): ("0",),
    ("simulate fabric", "chip"): ("h100-sxm", 3),  # a fabric's, and the number of one that stalls
    ("simulate serve", "region"): ("eu",),
    ("simulate serve", "to"): ({"eu": "0 s"},),
    ("simulate serve", "start"): ("1s", "500ms"),
    ("simulate serve", "duration"): ("60s", "1 s"),
    ("simulate serve", "rate"): (4, "8/s"),
}
# what a room asks for beside an input, which its declaration cannot say; None takes something away
MOE = ("experts", "tokens", "topk", "hidden", "precision")
PARTS = ("0", 0, [0])  # of a fabric: there is one of everything
COMPANY: dict[str, dict[str, Any]] = {
    "wait": {"batching": "dynamic"},
    "level": {"on": "fat-tree", **dict.fromkeys(("algorithm", "sides", "failure"))},
    "domain": {"on": "fat-tree", "sides": None},
    "chip": {"disaggregated": None, "handoff": None},
    **{
        name: {"on": "fat-tree", "topologies": ["fat-tree"], "sides": None}
        for name in ("radix", "switch", "server")
    },
    "expert_exchange": {"model": "qwen3-30b-a3b"},
    "routing_skew": {"model": "qwen3-30b-a3b"},
    "imbalance": {"model": "qwen3-30b-a3b", "chips": 32},
    "etp": {"model": "qwen3-30b-a3b", "chips": 32},
    "deadline": {"chips": None},
    "sides": {
        "on": "torus",
        "topologies": ["torus"],
        "chips": 64,
        "collective": "all-reduce",
        "size": "1MB",
        "nic": None,
        **dict.fromkeys(MOE),
        **dict.fromkeys(
            ("tiers", "oversubscription", "radix", "switch", "domain", "server", "chip", "failure")
        ),
    },
    "nic": {"on": "fat-tree", "topologies": ["fat-tree"], "sides": None, "failure": None},
    "tiers": {"on": "fat-tree", "topologies": ["fat-tree"], "sides": None},
    "dp": {
        "chips": 8,
        **dict.fromkeys(("tp", "pp", "cp", "vpp", "schedule", "split", "context_exchange", "layout")),
    },
    "shard": {"zero": 3},
    "algorithm": {
        "collective": "all-reduce",
        "size": "1MB",
        "on": "fat-tree",
        **dict.fromkeys((*MOE, "sides", "failure")),
    },
    "layout": {"dp": None},
    "modules": {"recompute": None},
    "recompute": {"modules": None},
    "job.collective": {"on": "fat-tree"},
    "failure.cubes": {
        "on": "torus",
        "chips": 64,
        "global_batch": 64,
        "collective": "all-reduce",
        "size": "1MB",
        **dict.fromkeys(MOE),
        **dict.fromkeys(("chip", "nic", "domain", "oversubscription", "tiers", "radix", "switch", "server")),
    },
    "failure.region": {"region": [{"name": "eu"}], "in_region": "eu", "from_region": "eu", "on": None},
    "oversubscription": {
        "on": "fat-tree",
        "topologies": ["fat-tree"],
        "chips": 1024,
        "global_batch": 1024,
        **dict.fromkeys(("sides", "tiers")),
    },
    "schedule": {"pp": 2, "vpp": None},
    "compress": {"zero": 1, "shard": None},
    "on": dict.fromkeys(("oversubscription", "tiers", "sides", "radix", "switch", "server")),
    "disaggregated": dict.fromkeys(("replicas", "failure", "chip", "batching", "wait", "autoscale")),
    "batching": {"disaggregated": None, "handoff": None},
    "version": {"on": "fat-tree", "sides": None, "failure": None},
    "vpp": {"pp": 2, "schedule": "interleaved"},
    "split": {"pp": 2, "model": "llama-3.1-8b"},
    "context_exchange": {"cp": 2},
    "handoff": {"role": None, "replicas": None, "disaggregated": "prefill=1xh200,decode=2xh200"},
    "loss": {"transport": "lossy"},
    "experts": {
        "collective": "all-to-all",
        "experts": 16,
        "chips": 16,
        "tokens": 4096,
        "topk": 2,
        "hidden": 4096,
        "failure": None,
        "sides": None,
    },
    "autoscale": {"replicas": 1, **dict.fromkeys(("failure", "disaggregated", "handoff"))},
    "in_region": {"region": [{"name": "eu"}], "from_region": "eu"},
    "from_region": {"region": [{"name": "eu"}], "in_region": "eu"},
    "failure": {"on": "fat-tree", "replicas": 4, "sides": None, "algorithm": None},
    "region": {"in_region": "eu", "from_region": "eu"},
    "busy": {"lull": "1 s", **dict.fromkeys(("swing", "peak", "hourly"))},
    "lull": {"busy": "1 s", **dict.fromkeys(("swing", "peak", "hourly"))},
    "swing": dict.fromkeys(("busy", "lull", "lull_rate", "hourly")),
    "hourly": dict.fromkeys(("busy", "lull", "lull_rate", "swing", "peak")),
    "think": {"turns": 2},
    "spread": {"isl": 300, "osl": 200},  # a shape says itself how lengths spread
    "trace": {"rate": None, "requests": None, "hash_block": 256},
    **{
        name: {"rate": None, "trace": str(FILES / "requests.jsonl")}
        for name in ("speed", "sort_trace", "first", "hash_block")
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
