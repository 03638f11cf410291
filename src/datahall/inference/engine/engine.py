"""Serving engines by name: how they batch, what they reserve, and what their host costs."""

from __future__ import annotations

from functools import cache
from importlib import resources
from math import isfinite

import msgspec

from datahall.breakdown import Source
from datahall.catalog.entries.chip import Chip
from datahall.errors import UnknownNameError
from datahall.scenario.words import Batching, ExpertExchange, Preemption

USUAL_BAND = (0.7, 1.4)  # where too few runs of an engine were measured


class Bands(msgspec.Struct, frozen=True, kw_only=True):
    """P10–P90 of measured over predicted figures on the marked rows, from `calibration/fit_inference.py`."""

    tpot: tuple[float, float] = USUAL_BAND
    ttft: tuple[float, float] = USUAL_BAND
    throughput: tuple[float, float] = USUAL_BAND


class Engine(msgspec.Struct, frozen=True, kw_only=True):
    """An engine of some version with its usual options."""

    name: str
    title: str
    source: Source
    stack: str  # whose kernels it runs: a stack of the silicon room
    batching: Batching = "continuous"
    token_budget: int = 8192  # most new tokens in one step, decodes included
    max_sequences: int = 256  # most sequences that run at once
    block_tokens: int = 16  # tokens of one block of the cache
    chunked_prefill: bool = True  # a prompt may be cut to what is left of the budget
    mixed_steps: bool = (
        True  # prompts and decodes share a step; otherwise a step of prompts stops all decodes
    )
    whole_prompt_blocks: bool = True  # a prompt is admitted only when blocks for all of it are free
    prefix_caching: bool = True
    graphs: bool = True  # steps replay captured graphs; otherwise the host launches every kernel
    whole_output_blocks: bool = False  # … and for all that it may generate, so that nothing is ever evicted
    preemption: Preemption = "recompute"
    expert_exchange: ExpertExchange = (
        "auto"  # how attention ranks meet at experts: auto is gather inside a domain
    )
    memory_fraction: float = 0.9  # of the chip's memory that the engine takes
    fraction_of_free: bool = False  # the fraction is of what weights and activations leave, not of the whole
    activations_inside: bool = True  # the fraction pays for activations too; otherwise they live in the rest
    reserved_bytes: float = 0.0  # of that: context, graphs, workspaces, communication buffers
    host_step_s: float = 0.0  # host time of a step that the chip waits for
    host_sequence_s: float = 0.0  # and more of it for each sequence in the step
    first_token_s: float = 0.0  # front end: tokenising, queues between processes, the first chunk back
    wait_s: float = 0.0  # dynamic batching: how long the first request waits for company
    small_chip_bytes: float = 0.0  # on chips with less memory, and on those named, …
    small_chips: tuple[str, ...] = ()
    small_token_budget: int = 0  # … these are the defaults
    small_max_sequences: int = 0
    bands: Bands = Bands()

    def band(self, metric: str) -> tuple[float, float]:
        """The band of a figure ("TPOT", "TTFT" or "throughput"), as factors on what is predicted."""
        found: tuple[float, float] = getattr(self.bands, metric.lower())
        return found


@cache
def engines() -> dict[str, Engine]:
    """All presets, by name."""
    text = resources.files("datahall.inference").joinpath("data/engines.toml").read_text(encoding="utf-8")
    return msgspec.toml.decode(text, type=dict[str, Engine])


def engine(name: str) -> Engine:
    """One preset; an unknown name is an error with the nearest ones."""
    known = engines()
    if name not in known:
        raise UnknownNameError("engine", name, known, hint=f"engines: {', '.join(known)}", field="engine")
    return known[name]


def engine_on(name: str, chip: Chip) -> Engine:
    """One preset with the defaults that it picks on a chip."""
    found = engine(name)
    memory = chip.visible_memory_bytes if isfinite(chip.visible_memory_bytes) else chip.memory_bytes
    small = memory < found.small_chip_bytes or chip.name.startswith(found.small_chips or ("\0",))
    if not small:
        return found
    return msgspec.structs.replace(
        found,
        token_budget=found.small_token_budget or found.token_budget,
        max_sequences=found.small_max_sequences or found.max_sequences,
    )
