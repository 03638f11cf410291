"""Training: spaces of layouts estimated, plans made, and steps simulated event by event."""

from __future__ import annotations

from functools import partial

import numpy as np
from calculon_peer import calculon_rate
from clock import best_s
from table import Line

from datahall.catalog import load
from datahall.cluster.cluster import cluster_of
from datahall.fabric.collectives.algorithms.all_reduce import ring_all_reduce_time
from datahall.planner.training.choice import plan_on_chips
from datahall.training.layout.layout import Layout
from datahall.training.layout.search import search
from datahall.training.layout.space import WIDE, layout_space
from datahall.training.pipeline.execution import simulate_step
from datahall.training.step.framework import framework
from datahall.training.step.step import Job, step_times


def training_lines() -> list[Line]:
    """Closed forms first, then the search, then a large step simulated."""
    return [*closed_form_lines(), *search_lines(), *plan_lines(), *step_lines()]


def closed_form_lines() -> list[Line]:
    """Times of a million ring all-reduces."""
    draw = np.random.default_rng(1)
    sizes, ranks = draw.uniform(1e3, 1e10, 1_000_000), draw.integers(2, 100_000, 1_000_000).astype(float)
    took = best_s(lambda: ring_all_reduce_time(sizes, ranks, hop_s=1e-5, bytes_per_s=5e10))
    return [Line("collectives: closed forms per second", 1e6 / took, "/s", 5e6, True)]


def search_lines() -> list[Line]:
    """GPT-3 175B on 512 A100: every legal layout, memory and time; then the time of a large space alone."""
    kit, shelf = framework("megatron-2022"), load()
    job = Job(model=shelf.model("gpt-3-175b"), seq=2048, global_batch=1536)
    cluster = cluster_of(shelf.chip("a100-sxm-80gb"), 512)
    found = best_s(lambda: search(job, cluster, kit))
    space = layout_space(job, 512)
    wide = space.keep(np.tile(np.arange(len(space)), 25))
    whole = best_s(lambda: search(job, cluster, kit, options=WIDE))
    peer, how = calculon_rate()
    rate = len(wide) / best_s(lambda: step_times(job, cluster, wide, kit))
    return [
        Line(f"training: GPT-3 on 512 chips, {len(space):,} layouts searched", found * 1e3, "ms", 1000.0),
        Line("training: layouts estimated per second, large space", rate, "/s", 1e5, True),
        Line(f"  against Calculon, {peer:,.0f}/s ({how})", rate / peer, "× its rate"),
        Line("training: the same with groups, expert widths and heads exchanged", whole * 1e3, "ms", 1000.0),
    ]


def plan_lines() -> list[Line]:
    """Llama 3.1 405B on 16,384 H100: searched, the best three simulated."""
    kit, shelf = framework("nemo"), load()
    job = Job(model=shelf.model("llama-3.1-405b"), seq=8192, global_batch=1024)
    machine = partial(cluster_of, shelf.chip("h100-sxm"), servers=shelf.servers())
    took = best_s(lambda: plan_on_chips(job, machine, 16_384, 15e12, kit))
    return [
        Line("training: 405B on 16,384 chips planned, best three simulated", took * 1e3, "ms", 3000.0),
    ]


def step_lines() -> list[Line]:
    """A step of 98,304 chips, event by event."""
    shelf = load()
    job = Job(model=shelf.model("llama-3.1-405b"), seq=8192, global_batch=12288)
    cluster = cluster_of(shelf.chip("h100-sxm"), 98_304)
    layout = Layout(tp=8, pp=16, vpp=8, dp=768)
    took = best_s(lambda: simulate_step(job, cluster, layout, framework("nemo")))
    return [Line("training: a step of 98,304 chips simulated", took * 1e3, "ms", 5000.0)]
