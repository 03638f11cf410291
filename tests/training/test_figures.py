"""Figures of a step and of a chip's memory: equal to what was computed in columns, and true at every node."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from datahall.breakdown import false_nodes
from datahall.catalog import Catalog
from datahall.cluster.cluster import cluster_of
from datahall.scenario.words import COMPRESSIONS, CONTEXT_EXCHANGES
from datahall.training.adapters.adapters import Adapters
from datahall.training.layout.columns import Space
from datahall.training.layout.layout import Layout
from datahall.training.leaf import Degrees
from datahall.training.memory.bookkeeping import BOOKS
from datahall.training.memory.figure import memory_figure
from datahall.training.memory.peak import fullest, stage_memories
from datahall.training.memory.tensors import stage_tensors
from datahall.training.pipeline.execution import PART_NAMES, simulate_step
from datahall.training.pipeline.figure import step_figure
from datahall.training.step.exchange import tensor_exchange
from datahall.training.step.figure import layer_figures
from datahall.training.step.framework import framework, frameworks
from datahall.training.step.step import Job, kernel_times
from datahall.workload.memory.recompute import RECOMPUTES
from datahall.workload.precision import Precision

ADAPTERS = (None, Adapters(rank=16, targets="attention"), Adapters(rank=8, quantised=True))

SHELF = Catalog(user=False)
MODELS = {name: SHELF.model(name) for name in ("llama-3.1-8b", "qwen3-30b-a3b", "deepseek-v3", "gpt-3-175b")}
OFFLOADS = ((), ("optimizer",), ("optimizer:nvme", "activations"), ("parameters",))


@st.composite
def runs(draw: st.DrawFn) -> tuple[Job, Layout]:
    model = MODELS[draw(st.sampled_from(sorted(MODELS)))]
    pp = draw(st.sampled_from([1, 2, 4, model.num_layers - 1, model.num_layers]))
    layout = Layout(
        tp=draw(st.sampled_from([1, 2, 4])),
        pp=pp,
        cp=draw(st.sampled_from([1, 2])),
        ep=draw(st.sampled_from([1, 4])) if model.moe is not None else 1,
        dp=draw(st.sampled_from([1, 2, 4])),
        zero=draw(st.integers(0, 3)),
        micro_batch=draw(st.sampled_from([1, 2])),
        recompute=draw(st.sampled_from(RECOMPUTES)),
        context_exchange=draw(st.sampled_from(CONTEXT_EXCHANGES)),
        offload=draw(st.sampled_from(OFFLOADS)),
        compression=draw(st.sampled_from(COMPRESSIONS)),
        shard=draw(st.sampled_from([0, 2])),
    )
    job = Job(
        model=model,
        seq=4096,
        global_batch=32,
        adapters=draw(st.sampled_from(ADAPTERS)),
        precision=Precision.named(draw(st.sampled_from(["bf16", "fp32"]))),
        state=draw(st.sampled_from(["", "pure-bf16"])),
    )
    assume(layout.is_legal(model, layout.num_chips, job.global_batch))
    return job, layout


@settings(max_examples=80, deadline=None)
@given(runs(), st.sampled_from(sorted(BOOKS)), st.sampled_from(["1f1b", "gpipe", "dualpipe"]))
def test_the_memory_of_every_stage_opens_to_what_it_is(
    asked: tuple[Job, Layout], books_name: str, schedule: str
) -> None:
    job, layout = asked
    books = BOOKS[books_name]
    stages = stage_memories(job, SHELF.chip("h100-sxm"), layout, books, schedule=schedule)
    for stage in stages:
        figure = memory_figure(job, Degrees(layout), stage, books, schedule, "memory")
        assert figure.value == pytest.approx(float(stage.memory.total_bytes[0]), rel=1e-12)
        assert false_nodes(figure) == []
        groups = next(one for _, one in figure.walk() if one.name == "groups with more than one rank")
        assert groups.value == sum(part.value > 1 for part in groups.parts)  # one for each that it rests on
    assert max(float(one.memory.total_bytes[0]) for one in stages) == float(
        stages[fullest(stages)].memory.total_bytes[0]
    )


@settings(max_examples=25, deadline=None)
@given(runs())
def test_tensors_by_name_add_up_to_the_activations(asked: tuple[Job, Layout]) -> None:
    job, layout = asked
    assume("activations" not in " ".join(layout.offload))
    for stage in stage_memories(job, SHELF.chip("h100-sxm"), layout, BOOKS["nemo"]):
        found = stage_tensors(job, layout, stage, BOOKS["nemo"])
        held = stage.num_in_flight * sum(one.size_bytes for one in found)
        assert held == pytest.approx(float(stage.memory.activation_bytes[0]), rel=1e-9)
        assert list(found) == sorted(found, key=lambda one: -one.size_bytes)


@settings(max_examples=25, deadline=None)
@given(
    runs(), st.sampled_from(["nemo", "fsdp", "megatron-2022"]), st.sampled_from(["h200-sxm", "a100-sxm-80gb"])
)
def test_a_step_opens_to_the_parts_that_were_simulated(
    asked: tuple[Job, Layout], name: str, chip: str
) -> None:
    job, layout = asked
    cluster = cluster_of(SHELF.chip(chip), layout.num_chips, servers=SHELF.servers())
    run = simulate_step(job, cluster, layout, framework(name))
    figure = step_figure(run)
    assert false_nodes(figure) == []
    assert figure.value == pytest.approx(run.step_s, rel=1e-12)
    parts = {part.name: part.value for part in figure.parts}
    for attribute, text in PART_NAMES.items():
        if text in parts:
            assert parts[text] == pytest.approx(
                getattr(run.parts, attribute), rel=1e-9, abs=1e-12 * run.step_s
            )


@pytest.mark.parametrize("name", sorted(frameworks()))
def test_a_layer_is_what_the_closed_form_takes_for_it(name: str) -> None:
    kit, cluster = framework(name), cluster_of(SHELF.chip("h100-sxm"), 16)
    for model, layout in (
        ("llama-3.1-8b", Layout(tp=4, dp=4, recompute="full")),
        ("gpt-oss-120b", Layout(ep=8, dp=16)),
    ):
        job = Job(model=SHELF.model(model), seq=4096, global_batch=32)
        layer_s, outside_s = kernel_times(job, cluster, Space.of(layout), kit)
        found = layer_figures(job, cluster, layout, kit)
        assert found.layer.value == pytest.approx(float(layer_s[0]), rel=1e-12)
        assert found.embedding.value + found.head.value == pytest.approx(float(outside_s[0]), rel=1e-12)
        exchanged_s = float(tensor_exchange(job, cluster, Space.of(layout), kit)[0])
        shown = 0.0 if found.exchange is None else sum(
            part.value for part in found.exchange.parts if not part.name.startswith("expert")
        )  # fmt: skip
        assert shown == pytest.approx(exchanged_s, rel=1e-12, abs=1e-15)


def test_kernels_rest_on_the_chip_and_on_what_was_fitted() -> None:
    cluster = cluster_of(SHELF.chip("h100-sxm"), 16)
    job = Job(model=MODELS["llama-3.1-8b"], seq=4096, global_batch=32)
    products = layer_figures(job, cluster, Layout(tp=4, dp=4), framework("nemo")).layer.at(
        "matrix products, bf16"
    )
    bound = products.at("kernels alone", "least time")
    peak = bound.at("their arithmetic", "dense bf16 peak")
    assert (peak.origin, peak.value) == ("fact", 989e12)
    assert 0.3 < products.at("kernels alone", "efficiency").value < 1.0
    assert np.isclose(bound.at("their arithmetic", "FLOP").value, 3 * 2 * 218_103_808 / 4 * 4096, rtol=1e-6)
