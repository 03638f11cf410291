"""Numbers of a layout as leaves: what was said is an input, what a plan chose a decision, the rest follows."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from datahall.answers.origin import attributed
from datahall.breakdown import false_nodes
from datahall.catalog import Catalog
from datahall.cluster.cluster import Cluster, cluster_from
from datahall.fabric.collectives.crossing import narrowest
from datahall.scenario.sections.fabric import FabricDesign
from datahall.scenario.usual import USUAL_BATCH
from datahall.training.layout.columns import Space
from datahall.training.layout.layout import Layout
from datahall.training.leaf import Degrees, dimension, of_chip
from datahall.training.setup import built, of_any_size

SHELF = Catalog(user=False)
LAYOUT = Layout(tp=4, pp=2, cp=2, dp=8, ep=2, micro_batch=2)


@given(
    fewest=st.booleans(), planned=st.booleans(), accumulated=st.booleans(),
    tp=st.sampled_from([1, 2, 8]), cp=st.sampled_from([1, 2]),
    dp=st.sampled_from([8, 16]), ep=st.sampled_from([1, 2, 8]), etp=st.sampled_from([0, 1, 2]),
    shard=st.sampled_from([0, 2, 8]), zero=st.sampled_from([1, 3]),
)  # fmt: skip
def test_every_way_to_a_number_leads_to_the_number(
    fewest: bool,
    planned: bool,
    accumulated: bool,
    tp: int,
    cp: int,
    dp: int,
    ep: int,
    etp: int,
    shard: int,
    zero: int,
) -> None:
    layout = Layout(tp=tp, cp=cp, pp=2, dp=dp, ep=ep, etp=etp, shard=shard, zero=zero)
    space = Space.of(layout)
    degrees = Degrees(layout, planned=planned, fewest=fewest, accumulated=accumulated)
    wanted = {
        degrees.chips(): layout.num_chips,
        degrees.replicas(): layout.dp,
        degrees.expert_ways(): float(space.expert_ways[0]),
        degrees.sharers("sharers"): float(space.sharers[0]),
        degrees.expert_sharers("expert sharers"): float(space.expert_sharers[0]),
        degrees.micro_batches(128): 128 / dp,
        degrees.table_stages(): 2,
    }
    for figure, value in wanted.items():
        assert figure.value == pytest.approx(value), figure.name
        assert false_nodes(figure) == []


def test_what_was_said_is_an_input_and_the_rest_follows() -> None:
    laid = Degrees(LAYOUT)
    assert attributed(laid.chips(), {"chips"}).origin == "input"
    assert attributed(laid.replicas(), {"chips"}).parts[0].origin == "input"
    assert attributed(laid.replicas(), {"dp"}).origin == "input"
    assert attributed(laid.number("tp"), {"tp"}).origin == "input"
    assert attributed(laid.number("tp"), {"dp"}).origin == "assumption"
    follows = Degrees(LAYOUT, fewest=True)
    assert [part.name for part in attributed(follows.chips(), ()).parts] == ["tp", "stages", "cp", "replicas"]
    assert attributed(follows.replicas(), ()).origin == "model"
    plan = Degrees(LAYOUT, planned=True)
    assert attributed(plan.chips(), ()).origin == plan.number("tp").origin == "decision"
    assert attributed(plan.chips(), {"chips"}).origin == "input"


def test_a_batch_is_an_input_where_it_was_said_or_is_the_usual_one() -> None:
    laid = Degrees(LAYOUT)
    for batch, origin in ((USUAL_BATCH, "assumption"), (USUAL_BATCH + 16, "model")):
        assert attributed(laid.batch(batch), ()).origin == origin
        assert attributed(laid.batch(batch), {"global_batch"}).origin == "input"
    assert "rounded up" in laid.batch(USUAL_BATCH + 16).note
    for batch in (USUAL_BATCH, USUAL_BATCH + 16):
        counted = Degrees(LAYOUT, accumulated=True).batch(batch)
        assert "accumulation" in attributed(counted, ()).note
        assert attributed(counted, {"global_batch"}).origin == "input"


def test_degrees_of_one_are_left_out_beside_others() -> None:
    degrees = Degrees(Layout(tp=4, cp=1, dp=1))
    group = degrees.group("both", degrees.number("tp"), degrees.number("cp"))
    assert (group.value, [part.name for part in group.parts]) == (4, ["tp"])
    alone = degrees.group("cp alone", degrees.number("cp"))
    assert (alone.value, [part.name for part in alone.parts]) == (1, ["cp"])


def test_a_number_of_the_catalogue_is_a_fact_and_another_is_not() -> None:
    chip, model = SHELF.chip("h100-sxm"), SHELF.model("llama-3.1-8b")
    known = of_chip(chip, "memory_bytes_per_s", chip.memory_bytes_per_s, "bytes_per_s")
    assert known.origin == "fact"
    assert of_chip(chip, "memory_bytes_per_s", 1.0, "bytes_per_s").origin == "assumption"
    assert of_chip(chip, "nothing of it", 1.0, "count").name == "nothing of it"
    assert dimension(model, "num_layers", "layers").origin == "fact"


def test_a_dimension_that_an_entry_leaves_out_has_the_parts_it_comes_from() -> None:
    def parts(name: str, field: str) -> tuple[float, list[tuple[str, float]]]:
        found = dimension(SHELF.model(name), field, "it")
        return found.value, [(part.name, part.value) for part in found.parts]

    heads = ("query heads", 64)
    assert parts("llama-3.1-70b", "head_dim") == (128, [("hidden width", 8192), heads])
    with_position = [("its part without position", 128), ("its part with position", 64)]
    assert parts("deepseek-v3", "head_dim") == (192, with_position)
    assert parts("gpt-oss-120b", "head_dim") == (64, [])  # its entry states one
    assert parts("bloom-176b", "num_kv_heads") == (112, [("query heads", 112)])
    assert parts("llama-3.1-70b", "num_kv_heads") == (8, [])


def test_every_dimension_of_the_catalogue_is_that_of_the_model() -> None:
    fields = ("num_layers", "hidden", "num_heads", "num_kv_heads", "head_dim", "ffn", "vocab")
    for model in SHELF.models():
        for field in fields:
            value = getattr(model, field)
            if value:
                found = dimension(model, field, field)
                assert (found.value, found.origin != "derived") == (value, True), (model.name, field)
                assert all(part.origin == "fact" for part in found.parts), (model.name, field)


def test_a_way_out_as_wide_as_its_ports_is_not_narrow() -> None:
    full = cluster_from(FabricDesign(topology="fat-tree", chips=1024), SHELF).system
    assert narrowest(full, 1024) is None
    tapered = cluster_from(
        FabricDesign(topology="clos", tiers=3, chips=2048, oversubscription=(1.0, 7.0)), SHELF
    ).system
    place = narrowest(tapered, 2048)
    assert place is not None
    assert place.name == "pod"
    ports = place.num_below * tapered.nic_bytes_per_s
    assert ports / 7 <= place.bytes_per_s < 0.99 * ports  # whole cables: a little wider than asked for
    assert narrowest(tapered, 8) is None


def test_a_machine_of_any_size_is_the_smallest_that_can_be_wired() -> None:
    def servers(num_chips: int) -> Cluster:
        return cluster_from(FabricDesign(topology="hgx", chips=num_chips), SHELF)

    assert of_any_size(servers).num_domain == 8
    few = built(servers, 4)  # of a machine of whole servers
    assert few is not None
    assert few.num_chips == 4
    found = built(servers, 16)
    assert found is not None
    assert found.num_chips == 16
