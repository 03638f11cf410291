"""Public functions of a room, called with values drawn for their parameters by name and by type.

A function whose parameters are all known below is called without a word elsewhere; one that takes what a simulation is
in the middle of, or what only a question makes, is left to the questions of its room.  A call may be refused, or make
no sense and break off: the name of what it breaks off with is recorded too.
"""

from __future__ import annotations

import importlib
import inspect
import itertools
import pkgutil
import random
import warnings
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from types import ModuleType
from typing import Any

import numpy as np
from tests.fabric.designs import asked, design
from tests.fabric.topologies import FAST, SMALL, WIRE
from tests.recorded.record import leaves, shipped

from datahall.cluster.cluster import cluster_from, cluster_of
from datahall.fabric.collectives.system import system_of
from datahall.inference.closed_form.steady_state import Load
from datahall.inference.engine.engine import engine
from datahall.inference.engine.replica import Adapters, Replica, Speculation
from datahall.inference.memory.kv_capacity import kv_capacity
from datahall.inference.step.kernels import Passes
from datahall.inference.step.price import price_steps
from datahall.reliability.asked import process_asked
from datahall.scenario.sections.operations.failures import FailureRates
from datahall.scenario.words import BATCH_RULES, COLLECTIVES, DETECTORS, POLICIES, SCHEDULES
from datahall.training.layout.layout import Layout
from datahall.training.layout.space import layout_space
from datahall.training.memory.bookkeeping import bookkeeping_of
from datahall.training.pipeline.orders import Counts
from datahall.training.step.framework import framework
from datahall.training.step.step import Job
from datahall.workload.precision import Precision

NUM_CALLS = 24
LONGEST = 500  # numbers of what one call returns that are looked at

COUNTS = (1, 2, 3, 4, 7, 8, 16, 64)
SIZES = (1.0, 1e3, 65_536.0, 1e6, 3.3e7, 1e9)
TIMES = (1e-6, 5e-6, 3e-4, 0.02, 1.5)
RATES = (2.5e10, 5e10, 4.5e11, 3.35e12)
SHARES = (0.0, 0.01, 0.25, 0.5, 0.95, 1.0)
BY_NAME: dict[str, tuple[Any, ...]] = {
    "num_chips": (2, 3, 8, 16, 36, 64, 72), "num_ranks": (1, 2, 3, 4, 8, 16, 17, 64, 144), "radix": (3, 4, 8, 16, 64),
    "tiers": (1, 2, 3), "seed": (0, 1, 5), "context": (1, 512, 4097), "batch": (1, 8, 65), "seq": (512, 4096),
    "num_experts": (8, 64, 256), "top_k": (1, 2, 8), "hidden": (1024, 4096), "acceptance": (0.1, 0.5, 0.9),
    "num_draft": (1, 3, 5), "exponent": (0.5, 1.0, 1.2), "sharpness": (1.0, 4.0), "oversubscription": (1, 2, 3),
    "m": (1, 64, 1000), "n": (64, 4096), "k": (128, 4096), "rate_per_s": (0.5, 4.0, 100.0),
    "zipf_factor": (0.0, 0.9, 1.2),
}  # fmt: skip
BY_SUFFIX: tuple[tuple[str, tuple[Any, ...]], ...] = (
    ("_bytes_per_s", RATES), ("bytes_per_s", RATES), ("flop_per_s", (1e14, 9.9e14)), ("_bytes", SIZES),
    ("_per_s", RATES),
    ("_s", TIMES), ("_fraction", SHARES), ("share", SHARES), ("_factor", (0.5, 1.0, 2.0)), ("_ratio", (0.5, 1.0, 3.0)),
    ("_tokens", COUNTS),
)  # fmt: skip
NUMERIC = {"int", "float", "Number", "Column", "Floats", "Column | float", "float | None", "int | None"}


REPLICAS: tuple[tuple[str, str, str, str, dict[str, Any]], ...] = (
    ("llama-3.1-8b", "h100-sxm", "vllm", "bf16", {}),
    ("qwen3-30b-a3b", "h200-sxm", "sglang", "fp8", {"tp": 2, "dp": 2, "ep": 4, "routing_skew": 0.8}),
    ("llama-3.1-70b", "a100-sxm-80gb", "trtllm", "w4a16", {"tp": 4, "pp": 2}),
    ("deepseek-v2-lite", "mi300x", "vllm", "bf16", {"host_cache_bytes": 1e10, "drive_cache_bytes": 1e11}),
    ("gemma-2-9b", "l40s", "vllm-0-11", "fp8", {"tp": 2, "peer_to_peer": False}),
    (
        "llama-3.1-8b",
        "h100-sxm",
        "vllm",
        "bf16",
        {"speculation": Speculation(num_draft=3, acceptance=0.6, draft="ngram")},
    ),
    ("llama-3.1-8b", "h100-sxm", "vllm", "bf16", {"adapters": Adapters(num=20, rank=16), "tp": 2}),
)


CHIPS = ("h100-sxm", "b200-sxm", "a100-sxm-80gb", "mi300x", "l40s", "tpu-v4", "a10", "gb200")
MODELS = ("llama-3.1-8b", "qwen3-30b-a3b", "deepseek-v2-lite", "gemma-2-9b", "nemotron-h-8b")
NETWORKS = (
    "fat-tree", "rail-optimised", "dragonfly", "tree", "hyperx", "rail-only", "leaf-spine", "torus", "tpu-pod",
)  # fmt: skip
LAYOUTS = (
    Layout(tp=1, pp=1, dp=64), Layout(tp=2, pp=4, dp=8, zero=1), Layout(tp=8, pp=2, dp=4, recompute="full"),
    Layout(tp=4, pp=2, cp=2, dp=4, zero=1, recompute="selective"),
)  # fmt: skip
LOADS = (
    Load(prompt=500.0, output=100.0),
    Load(prompt=2000.0, output=1.0, cached=700.0, spread=1.2, verified=4.0),
)
FAILURE_RATES = (
    FailureRates(), FailureRates(like="rsc-1", age_s=1e6),
    FailureRates(failure_rate_per_node_day=0.02, job_rate_per_day=2.0),
    FailureRates(shock_rate_per_day=0.01, shock_nodes=8, enough_fraction=0.9),
)  # fmt: skip


@cache
def made(kind: str) -> tuple[Any, ...]:
    """Values of a type of the project."""
    return tuple(OBJECTS[kind]()) if kind in OBJECTS else ()


def clusters() -> Iterator[Any]:
    yield from (cluster_of(one, 64, catalog=shipped()) for one in made("Chip")[:4])
    yield from (cluster_from(one, shipped()) for one in made("FabricDesign"))


def systems() -> Iterator[Any]:
    yield from (one.system for one in made("Cluster"))
    yield from (system_of(one, num_domain=4, catalog=shipped()) for one in made("Chip")[:3])


def replicas() -> Iterator[Replica]:
    shelf = shipped()
    for model, chip, name, form, said in REPLICAS:
        precision = Precision.named(form)
        yield Replica(
            model=shelf.model(model), chip=shelf.chip(chip), engine=engine(name), precision=precision, **said
        )


OBJECTS: dict[str, Callable[[], Iterable[Any]]] = {
    "bool": lambda: (False, True),
    "Catalog": lambda: (shipped(),),
    "Chip": lambda: map(shipped().chip, CHIPS),
    "Model": lambda: map(shipped().model, MODELS),
    "Layer": lambda: (one.layers[0] for one in made("Model")),
    "Server": lambda: shipped().servers(),
    "Precision": lambda: map(Precision.named, ("bf16", "fp8", "w4a16")),
    "Wire": lambda: (WIRE, FAST),
    "Fabric": lambda: SMALL.values(),
    "Design": lambda: (design(name, 64, catalog=shipped()) for name in NETWORKS),
    "FabricDesign": lambda: (asked(shipped(), topology=name, chips=64) for name in NETWORKS[:-1]),
    "Collective": lambda: COLLECTIVES,
    "Policy": lambda: POLICIES,
    "Schedule": lambda: SCHEDULES,
    "Counts": lambda: itertools.starmap(
        Counts, itertools.product((1, 2, 4, 8), (1, 4, 7, 16, 64), (1, 2, 3))
    ),
    "Cluster": clusters,
    "System": systems,
    "Job": lambda: (Job(model=one, seq=2048, global_batch=128) for one in made("Model")),
    "Framework": lambda: map(framework, ("nemo", "fsdp", "megatron-core", "torchtitan")),
    "Bookkeeping": lambda: map(bookkeeping_of, made("Framework")),
    "Layout": lambda: LAYOUTS,
    "Space": lambda: (layout_space(one, 16) for one in made("Job")[:2]),
    "Replica": replicas,
    "Passes": lambda: map(Passes.of, made("Replica")),
    "KvCapacity": lambda: map(kv_capacity, made("Replica")),
    "StepPrice": lambda: (price_steps(one, max_tokens=512, max_context=2048) for one in made("Replica")[:4]),
    "StepTable": lambda: (one.table for one in made("StepPrice")),
    "Load": lambda: LOADS,
    "FailurePreset": lambda: shipped().failure_presets(),
    "Component": lambda: shipped().every("component"),
    "FailureRates": lambda: FAILURE_RATES,
    "FailureProcess": lambda: (
        process_asked(one, chip, shipped(), 512) for chip in made("Chip")[:6] for one in FAILURE_RATES
    ),
    "Detector": lambda: DETECTORS,
    "BatchRule": lambda: BATCH_RULES,
    "Speculation | None": lambda: (None, Speculation(num_draft=3, acceptance=0.6, draft="ngram")),
    "Sequence[int]": lambda: ((4, 4, 4), (2, 8), (16,), (3, 4, 2)),
    "tuple[int, ...]": lambda: ((4, 4, 4), (2, 8), (3, 4)),
}


# folders whose modules were recorded in another
MOVED = {"fabric.topology.grids": "fabric.topology"}


def values_of(parameter: inspect.Parameter) -> tuple[Any, ...]:
    """What a parameter may be; nothing where that is not known."""
    kind, name = str(parameter.annotation), parameter.name
    if kind not in NUMERIC:
        return made(kind)
    found = BY_NAME.get(name) or next((values for end, values in BY_SUFFIX if name.endswith(end)), COUNTS)
    if kind in {"float", "float | None"}:
        return tuple(map(float, found))
    if kind in {"Column", "Floats"}:
        return tuple(np.array([one, found[0]], dtype=float) for one in found)
    return found


def functions(room: str) -> Iterator[tuple[str, Any]]:
    """Every public function of a room, with its name."""
    package = importlib.import_module(f"datahall.{room}")
    for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        module: ModuleType = importlib.import_module(found.name)
        for name, one in sorted(vars(module).items()):
            plain = inspect.unwrap(one) if callable(one) else one
            if inspect.isfunction(plain) and plain.__module__ == found.name and not name.startswith("_"):
                yield f"{recorded_as(found.name.removeprefix('datahall.'))}.{name}", one


def recorded_as(module: str) -> str:
    """The name that its figures stand under: what is drawn hangs on it, and a module that moves keeps its record."""
    folder, _, name = module.rpartition(".")
    return f"{MOVED.get(folder, folder)}.{name}"


def sampled(room: str, *, without: tuple[str, ...] = ()) -> Iterator[tuple[str, object]]:
    """What each function of a room that can be called returns for the values that were drawn."""
    for name, function in functions(room):
        parameters = inspect.signature(inspect.unwrap(function)).parameters.values()
        known = {one.name: values_of(one) for one in parameters}
        needed = {one.name for one in parameters if one.default is inspect.Parameter.empty}
        odd = any(one.kind in {one.VAR_POSITIONAL, one.VAR_KEYWORD} for one in parameters)
        if (
            odd
            or not parameters
            or any(not known[one] for one in needed)
            or name.startswith(without or ("-",))
        ):
            continue
        draw = random.Random(name)
        found: list[float | str] = []
        for _ in range(NUM_CALLS):
            said = {
                one: draw.choice(values)
                for one, values in known.items()
                if values and (one in needed or draw.random() < 0.5)
            }
            found += called(function, parameters, said)
        yield name, found


def called(function: Any, parameters: Any, said: dict[str, Any]) -> list[float | str]:
    """The numbers and words that a call returns, or the name of what it breaks off with."""
    by_place = [said[one.name] for one in parameters if one.kind is one.POSITIONAL_ONLY]
    rest = {
        one.name: said[one.name]
        for one in parameters
        if one.name in said and one.kind is not one.POSITIONAL_ONLY
    }
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            return list(itertools.islice(leaves(function(*by_place, **rest)), LONGEST))
        except Exception as error:
            return [type(error).__name__]
