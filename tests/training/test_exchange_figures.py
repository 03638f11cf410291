"""Exchange as figures: each collective is the one that the closed form timed, and every leaf says what it is."""

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from datahall.answers.ask import ask, form_of
from datahall.answers.reply import answer_of
from datahall.breakdown import Breakdown, false_nodes
from datahall.catalog import Catalog
from datahall.cluster.cluster import Cluster
from datahall.scenario.read import read_names
from datahall.scenario.words import COMPRESSIONS, CONTEXT_EXCHANGES
from datahall.training.adapters.adapters import Adapters
from datahall.training.layout.columns import Space
from datahall.training.layout.layout import Layout
from datahall.training.leaf import Degrees
from datahall.training.pipeline.figure import OTHERS
from datahall.training.setup import machine_of
from datahall.training.step.exchange import (
    data_exchange,
    halves_between_sharers,
    messages_alone,
    tensor_exchange,
    trained_on_chip,
)
from datahall.training.step.exchange_figure import ExchangeFigures
from datahall.training.step.experts import expert_exchange
from datahall.training.step.framework import Framework, framework
from datahall.training.step.step import Job
from datahall.workload.memory.recompute import RECOMPUTES
from datahall.workload.precision import Precision

ADAPTERS = (None, Adapters(rank=16, targets="attention"), Adapters(rank=8, quantised=True))

SHELF = Catalog(user=False)
MODELS = {name: SHELF.model(name) for name in ("llama-3.1-8b", "qwen3-30b-a3b", "deepseek-v3")}
MACHINES: dict[str, dict[str, Any]] = {
    "as sold": {},
    "small domains": {"domain": 2},
    "tree": {"on": "tree"},
    "narrow": {"on": "fat-tree", "oversubscription": "8:1", "chips": 512},
    "torus": {"on": "torus", "chip": "tpu-v5p"},
    "ports out": {"on": "fat-tree", "failure": "nics=0,left=50%"},
}
# that sends a copy to each expert, and one that sends a token once to each place
KITS = tuple(framework(name) for name in ("megatron-2022", "megatron-deepspeed", "nemo", "megatron-bridge"))


def machine(name: str, num_chips: int) -> Cluster:
    given = {"model": "llama-3.1-8b", "tokens": "1T", "chips": num_chips, **MACHINES[name]}
    return machine_of(read_names(form_of("plan train"), given, SHELF))(given["chips"])  # type: ignore[arg-type]


@st.composite
def layouts(draw: st.DrawFn) -> tuple[Job, Layout]:
    model = MODELS[draw(st.sampled_from(sorted(MODELS)))]
    tp, pp, cp = (draw(st.sampled_from(values)) for values in ([1, 2, 4], [1, 2, 4], [1, 2, 4]))
    dp = 64 // (tp * pp * cp)
    layout = Layout(
        tp=tp,
        pp=pp,
        cp=cp,
        dp=dp,
        ep=draw(st.sampled_from([1, 2, 8, 16])) if model.moe is not None else 1,
        etp=draw(st.sampled_from([0, 1, 2])) if model.moe is not None else 0,
        zero=draw(st.integers(0, 3)),
        shard=draw(st.sampled_from([0, 2])),
        micro_batch=draw(st.sampled_from([1, 2])),
        recompute=draw(st.sampled_from(RECOMPUTES)),
        context_exchange=draw(st.sampled_from(CONTEXT_EXCHANGES)),
        compression=draw(st.sampled_from(COMPRESSIONS)),
        sequence_parallel=draw(st.booleans()),
    )
    imbalance = draw(st.sampled_from([None, 1.3, 50.0])) if model.moe is not None else None
    precision = Precision.named(draw(st.sampled_from(["bf16", "fp32"])))
    job = Job(
        model=model,
        seq=4096,
        global_batch=128,
        precision=precision,
        imbalance=imbalance,
        adapters=draw(st.sampled_from(ADAPTERS)),
    )
    assume(layout.is_legal(model, 64, 128))
    return job, layout


def hiding_nothing(kit: Framework) -> Framework:
    return msgspec.structs.replace(kit, data_exposed=1.0)


@settings(max_examples=150, deadline=None)
@given(layouts(), st.sampled_from(sorted(MACHINES)), st.sampled_from(KITS))
def test_exchange_opens_to_the_collectives_that_were_timed(
    asked: tuple[Job, Layout], name: str, kit: Framework
) -> None:
    job, layout = asked
    cluster, space = machine(name, 64), Space.of(layout)
    figures = ExchangeFigures(job, cluster, layout, kit, Degrees(layout))
    layer = figures.layer()
    tensor_s, expert_s = (
        float(one(job, cluster, space, kit)[0]) for one in (tensor_exchange, expert_exchange)
    )
    shown = {part.name: part.value for part in layer.parts} if layer is not None else {}
    assert shown.pop("expert exchange", 0.0) == pytest.approx(expert_s, rel=1e-9)
    assert sum(shown.values()) == pytest.approx(tensor_s, rel=1e-9)
    assert layer is None or false_nodes(layer) == []
    gradients = figures.gradients()
    whole_s = float(
        data_exchange(
            job,
            cluster,
            space,
            hiding_nothing(kit),
            halves_between_sharers(job, cluster, space, hiding_nothing(kit)),
        )[0]
    )
    assert (gradients.value if gradients is not None else 0.0) == pytest.approx(whole_s, rel=1e-9)
    assert gradients is None or false_nodes(gradients) == []
    assert figures.held().value == pytest.approx(float(trained_on_chip(job, space).total[0]), rel=1e-12)
    if layout.pp > 1:
        message_s = float(messages_alone(job, cluster, space)[0])
        assert figures.message().value == pytest.approx(message_s, rel=1e-9)


@pytest.mark.parametrize(
    ("ep", "domain", "legs"),
    [(8, 8, {"inside a domain"}), (16, 8, {"inside a domain", "between domains"}), (8, 1, {"between domains"}),
     (64, 8, {"inside a domain", "between domains"})],
)  # fmt: skip
def test_a_token_goes_once_to_each_domain_and_once_to_each_chip(ep: int, domain: int, legs: set[str]) -> None:
    """Experts on servers of eight: inside one, or also between two and more; without servers only between them."""
    job = Job(model=MODELS["deepseek-v3"], seq=4096, global_batch=64)
    layout, kit = Layout(ep=ep, dp=64), framework("megatron-bridge")
    assert kit.deduplicated
    asked = {"model": "llama-3.1-8b", "tokens": "1T", "chips": 64, "domain": domain}
    cluster = machine_of(read_names(form_of("plan train"), asked, SHELF))(64)  # type: ignore[arg-type]
    found = ExchangeFigures(job, cluster, layout, kit, Degrees(layout)).layer()
    assert found is not None
    expert = found.at("expert exchange")
    assert {part.name for part in expert.at("one exchange").parts} == legs
    assert expert.value == pytest.approx(
        float(expert_exchange(job, cluster, Space.of(layout), kit)[0]), rel=1e-9
    )


def test_a_mixture_exchanges_four_times_what_one_exchange_takes() -> None:
    """Dispatch and combine, forward and backward, on half the layers: four halves of one exchange."""
    model = MODELS["deepseek-v3"]
    layout, kit = Layout(ep=8, dp=64), msgspec.structs.replace(KITS[0], expert_exposed=1.0)
    job = Job(model=model, seq=4096, global_batch=64, imbalance=1.0)
    figures = ExchangeFigures(job, machine("as sold", 64), layout, kit, Degrees(layout))
    found = figures.layer()
    assert found is not None
    expert = found.at("expert exchange")
    once = expert.at("all-to-all of 8 ranks")
    routed = sum(layer.mlp == "moe" for layer in model.layers) / model.num_layers
    assert expert.value == pytest.approx(4 * routed * once.value, rel=1e-12)


def test_a_narrow_way_out_has_the_links_of_the_fabric() -> None:
    """Every way out that the chain passes is as wide as that place of the fabric."""
    cluster, layout = machine("narrow", 64), Layout(dp=512)
    job = Job(model=MODELS["llama-3.1-8b"], seq=4096, global_batch=512)
    found = ExchangeFigures(job, cluster, layout, KITS[0], Degrees(layout)).gradients()
    assert found is not None
    ways = [one for _, one in found.walk() if one.name.startswith("way out of a ")]
    assert ways
    for way in ways:
        cut = next(cut for cut in cluster.system.cuts if way.name == f"way out of a {cut.name}")
        assert way.at("links out of it").value * cut.link_bytes_per_s == pytest.approx(cut.bytes_per_s)


# -- what leaves are --------------------------------------------------------------------------------------------------


def leaves(figure: Breakdown) -> Iterator[Breakdown]:
    return (one for _, one in figure.walk() if not one.parts)


COLLECTIVES = ("closed form", "out of a ", "all-", "reduce-scatter", "one message")


def besides_collectives(figure: Breakdown) -> Iterator[Breakdown]:
    yield figure
    for part in figure.parts:
        if part.name != "closed form" and not part.name.startswith(
            ("out of a ", "all-", "reduce-scatter", "one message")
        ):
            yield from besides_collectives(part)


QUESTIONS: dict[str, tuple[str, dict[str, Any]]] = {
    "step": ("simulate train", {"model": "qwen3-30b-a3b", "chips": 32, "chip": "h200", "pp": 2, "ep": 8, "tp": 2,
                                "imbalance": 1.3, "micro_batch": 2}),
    "memory": ("show memory", {"model": "llama-3.1-70b", "chips": 64, "tp": 8, "pp": 4, "micro_batch": 2,
                               "offload": "optimizer"}),
    "plan": ("plan train", {"model": "llama-3.1-8b", "tokens": "1T", "chips": 32}),
}  # fmt: skip


def figure(name: str) -> Breakdown:
    verb, given = QUESTIONS[name]
    found = answer_of(ask(verb, given, catalog=SHELF)).figure
    assert found is not None
    return found.at("time of the steps") if verb == "plan train" else found


def catalogued() -> set[float]:
    """Every number that the catalogue states with a source."""
    entries = [
        *(SHELF.model(name) for name in ("qwen3-30b-a3b", "llama-3.1-70b", "llama-3.1-8b")),
        *(SHELF.chip(name) for name in ("h200", "h100-sxm")),
        *SHELF.servers(),
    ]
    return {float(one.value) for entry in entries for one in entry.facts.values()}  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", QUESTIONS)
def test_a_fact_is_a_number_of_the_catalogue(name: str) -> None:
    known = catalogued()
    facts = [one for one in leaves(figure(name)) if one.origin == "fact"]
    assert facts
    assert [str(one) for one in facts if one.value not in known] == []


@pytest.mark.parametrize("name", QUESTIONS)
def test_what_is_neither_fact_nor_input_says_from_what_it_comes(name: str) -> None:
    """Twice for keys and values, or for read and written, and the parts beside are all; collectives have tests of
    their own."""
    bare = {
        one.name for one in besides_collectives(figure(name)) if one.origin == "derived" and not one.parts
    }
    assert bare <= {"keys and values", "read and written", OTHERS}


def test_what_was_given_is_an_input_and_what_a_plan_decided_a_decision() -> None:
    step = figure("step")
    origins = {one.name: one.origin for one in leaves(step)}
    assert {origins[name] for name in ("imbalance", "micro-batch", "expert ranks", "stages")} == {"input"}
    assert origins["global batch"] == "assumption"  # nobody said one
    assert {one.value for _, one in step.walk() if one.name == "imbalance"} == {1.3}
    assert {one.value for _, one in step.walk() if one.name == "micro-batch"} == {2.0}
    bubble = step.at("bubble")
    assert [part.origin for part in bubble.parts] == ["model"]
    assert bubble.parts[0].at("stages").origin == "input"
    planned = {one.name: one.origin for one in leaves(figure("plan"))}
    assert planned["micro-batch"] == planned["tp"] == "decision"
    assert planned["tokens"] == planned["chips"] == "input"
