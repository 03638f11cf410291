"""`show collective`: the sentence, the chain, the table, what binds, and what is refused."""

from __future__ import annotations

import msgspec
import pytest
from tests.answers.borders import asked_everywhere, runs

import datahall as dh
from datahall.answer import Answer
from datahall.answers.ask import form_of
from datahall.breakdown import false_nodes
from datahall.catalog import Catalog
from datahall.cluster.cluster import cluster_from
from datahall.errors import DatahallError, InfeasibleError, ScenarioError
from datahall.fabric.collectives.algorithms.torus import HOP_S
from datahall.fabric.collectives.nccl import network
from datahall.fabric.collectives.textbook import textbook_times
from datahall.scenario.kinds import Choice
from datahall.scenario.sections.fabric import FabricDesign


def show(kind: str, shelf: Catalog, **asked: object) -> Answer:
    found = dh.show_collective(kind, **asked, catalog=shelf)
    assert isinstance(found, Answer)
    assert found.figure is not None
    assert not false_nodes(found.figure)
    assert found.figure.value == pytest.approx(found.results["time_s"], rel=1e-9)
    return found


def time_s(kind: str, shelf: Catalog, **asked: object) -> float:
    found = show(kind, shelf, **asked).results["time_s"]
    assert isinstance(found, float)
    return found


TOKENS = {"experts": 64, "tokens": "2^20", "topk": 2, "hidden": 4096}


def sent_in() -> tuple[str, ...]:
    """The formats that are declared, completed and documented for the tokens of experts."""
    kind = form_of("show collective").fields["precision"].kind
    assert isinstance(kind, Choice)
    return kind.options


def test_tokens_are_sent_in_every_format_that_is_declared(shelf: Catalog) -> None:
    assert {"bf16", "fp8"} <= set(sent_in())
    for name in sent_in():
        found = show("all-to-all", shelf, precision=name.upper(), **TOKENS)
        assert found.inputs["precision"] == name


@pytest.mark.parametrize("name", ["w4a16", "int4", "fp4", "fp8-kv8", "mxfp4", "tf32", "fp7"])
def test_what_tokens_are_not_sent_in_is_refused_with_what_they_are(shelf: Catalog, name: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        show("all-to-all", shelf, precision=name, **TOKENS)
    assert caught.value.field == "precision"
    assert f"one of {', '.join(sent_in())}" in caught.value.hint


def test_a_gigabyte_on_1024_chips(shelf: Catalog) -> None:
    found = show("all-reduce", shelf, on="fat-tree", chips=1024, chip="h100-sxm", size="1GB")
    assert "1,024 × NVIDIA H100 SXM on fat-tree" in found.headline
    assert found.binding.startswith("Bandwidth")
    assert found.results["algorithm"] in {"NVLS tree", "tree", "ring"}
    busbw = found.results["busbw_bytes_per_s"]
    assert isinstance(busbw, float)
    assert 250e9 < busbw < 400e9
    algorithms = found.tables[0]
    assert algorithms.marked is not None
    assert algorithms.columns[0].name == "algorithm"
    assert found.figure is not None
    assert found.figure.band is not None
    assert found.figure.citations()
    assert any("estimate is the smallest" in note for note in found.notes)


def test_without_a_topology_the_ports_of_the_chips_are_the_network(shelf: Catalog) -> None:
    alone = time_s("all-reduce", shelf, chips=1024, size="1GB")
    assert alone == pytest.approx(time_s("all-reduce", shelf, on="fat-tree", chips=1024, size="1GB"))


def test_small_arrays_are_bound_by_steps(shelf: Catalog) -> None:
    assert show("all-reduce", shelf, chips="1024", size="8KB").binding.startswith("Latency binds")


def test_every_algorithm_is_there_when_asked(shelf: Catalog) -> None:
    few = show("all-reduce", shelf, chips=64, size="64MB")
    many = show("all-reduce", shelf, chips=64, size="64MB", all=True)
    names = [str(row[0]) for row in many.tables[0].rows]
    assert len(many.tables[0].rows) > len(few.tables[0].rows)
    for name in ("ring LL", "tree Simple", "NVLS tree", "halving-doubling", "two-level", "InfiniBand SHARP"):
        assert any(row.startswith(name) for row in names)


def test_ten_thousand_chips_take_28_steps_or_19998(shelf: Catalog) -> None:
    found = show("all-reduce", shelf, chips=10_000, size="1GB")
    steps = next(table for table in found.tables if table.title.startswith("steps"))
    by_name = {str(row[0]): row for row in steps.rows}
    assert by_name["ring"][1:3] == (9999.0, 19998.0)
    assert by_name["double binary tree"][1:3] == (14.0, 28.0)


def test_moe_dispatch_counts_bytes_then_time(shelf: Catalog) -> None:
    found = show("all-to-all", shelf, experts=64, tokens="2^20", topk=2, hidden=4096)
    assert found.results["sent_bytes"] == 264_241_152
    assert "264,241,152 bytes" in found.headline
    time = found.results["time_s"]
    assert isinstance(time, float)
    assert 264_241_152 / 50e9 * 0.85 < time < 264_241_152 / 50e9 * 1.5


def test_every_leaf_of_a_plain_tree_has_one_cable_that_all_must_cross(shelf: Catalog) -> None:
    found = show("all-reduce", shelf, on="tree", chips=1024, size="1GB")
    time = found.results["time_s"]
    assert isinstance(time, float)
    assert time >= 1e9 / 50e9  # what a leaf's sum alone takes to leave it
    assert found.results["bound"] == "leaf"
    assert "The way out of a leaf binds" in found.binding
    assert time_s("all-to-all", shelf, on="tree", chips=1024, size="100MB") > 20 * time_s(
        "all-to-all", shelf, on="fat-tree", chips=1024, size="100MB"
    )


@pytest.mark.parametrize(("ratio", "simulated_s"), [("2:1", 38.6e-3), ("4:1", 74.3e-3)])
def test_oversubscription_slows_an_all_to_all_as_the_simulator_says(
    ratio: str, simulated_s: float, shelf: Catalog
) -> None:
    time = time_s("all-to-all", shelf, on="fat-tree", chips=512, size="1GB", oversubscription=ratio)
    assert 0.85 * simulated_s < time < simulated_s  # hashed paths collide there


def test_the_nic_binds_an_exchange_between_racks(shelf: Catalog) -> None:
    found = show("all-to-all", shelf, on="nvl72", chips=1152, size="1GB")
    assert found.results["bound"] == "NIC"
    assert "NICs" in found.binding


def test_a_failure_narrows_what_is_left(shelf: Catalog) -> None:
    asked = {"on": "rail-optimised", "chips": 1024, "size": "1GB"}
    whole = time_s("all-to-all", shelf, **asked)
    assert time_s("all-to-all", shelf, **asked, failure={"nics": "0"}) > whole
    assert time_s("all-to-all", shelf, **asked, failure={"switches": "0"}) > whole
    with pytest.raises(InfeasibleError, match="cuts off 32 of 1,024 chips"):
        time_s("all-to-all", shelf, on="fat-tree", chips=1024, size="1GB", failure={"switches": "0"})
    with pytest.raises(ScenarioError, match="switches of failure does nothing here: it needs on"):
        time_s("all-to-all", shelf, chips=1024, size="1GB", failure={"switches": "0"})


def test_a_torus_says_the_steps_that_it_takes(shelf: Catalog) -> None:
    """A small array is all hops: an all-reduce goes round twice, half of each of three axes of 16."""
    asked = {"on": "torus", "chips": 4096, "chip": "tpu-v5p", "size": "1KB"}
    for kind, steps in (
        ("all-reduce", 48),
        ("all-gather", 24),
        ("reduce-scatter", 24),
        ("all-to-all", 24),
        ("send-recv", 1),
    ):
        found = show(kind, shelf, **asked)
        assert found.results["num_steps"] == steps
        assert found.results["time_s"] == pytest.approx(steps * HOP_S, rel=0.01)


@pytest.mark.parametrize(
    ("chip", "chips", "wired"),
    [
        ("tpu-v4", 4096, "a 16×16×16 torus"),
        ("tpu-v5p", 512, "a 8×8×8 torus"),
        ("tpu-v6e", 256, "a 16×16 torus"),
    ],
)
def test_tpus_stand_on_their_torus_unless_told_otherwise(
    chip: str, chips: int, wired: str, shelf: Catalog
) -> None:
    asked = {"chip": chip, "chips": chips, "size": "1MB"}
    for kind in ("all-reduce", "all-gather", "reduce-scatter", "all-to-all", "send-recv"):
        found = show(kind, shelf, **asked)
        assert found.results["time_s"] == pytest.approx(time_s(kind, shelf, **asked, on="torus"))
        assert f"on {wired} takes" in found.headline
        assert any(note.startswith("no topology is named") and wired in note for note in found.notes)
    assert time_s("all-reduce", shelf, **asked, on="fat-tree") > 1.5 * time_s("all-reduce", shelf, **asked)


@pytest.mark.parametrize(
    ("chip", "chips", "sides"),
    [("tpu-v5p", 8, (2, 2, 2)), ("tpu-v4", 32, (2, 4, 4)), ("tpu-v5e", 16, (4, 4))],
)
def test_a_small_slice_is_called_the_mesh_that_it_is(
    chip: str, chips: int, sides: tuple[int, ...], shelf: Catalog
) -> None:
    """And the command that follows draws the same."""
    found = show("all-gather", shelf, chip=chip, chips=chips, size="1GB")
    assert f"on a {'×'.join(map(str, sides))} mesh takes" in found.headline
    assert (
        f"datahall show fabric mesh --chip {chip} --sides {'x'.join(map(str, sides))}" in found.next_commands
    )


def test_tpus_of_several_slices_cross_their_network(shelf: Catalog) -> None:
    """Two slices of 256: half of what each chip sends in an all-to-all leaves its slice, through its own port."""
    asked = {"chip": "tpu-v6e", "chips": 512, "size": "1GB"}
    found = show("all-to-all", shelf, **asked, nic="100 Gb/s")
    assert "2 slices of 16×16" in found.headline
    assert found.results["time_s"] == pytest.approx(0.5e9 / 12.5e9)
    assert found.results["bound"] == "NIC"
    assert time_s("all-to-all", shelf, **asked, nic="200 Gb/s") < 0.6 * found.results["time_s"]
    assert any(
        "of which 12 chips take no part" in note
        for note in show("all-reduce", shelf, chip="tpu-v5p", chips=500, size="1MB").notes
    )


def test_a_torus_is_answered_from_its_links(shelf: Catalog) -> None:
    found = show("all-gather", shelf, on="torus", chips=64, chip="tpu-v5p", size="1GB")
    assert found.results["time_s"] == pytest.approx(1e9 / (6 * 90e9), rel=0.01)
    assert "4×4×4 torus" in found.headline
    dead = show(
        "all-to-all", shelf, on="torus", chips=64, chip="tpu-v5p", size="1GB", failure={"links": "0-15"}
    )
    assert dead.results["time_s"] > time_s(
        "all-to-all", shelf, on="torus", chips=64, chip="tpu-v5p", size="1GB"
    )  # type: ignore[operator]
    with pytest.raises(DatahallError, match="broadcast on a torus is not modelled"):
        show("broadcast", shelf, on="torus", chips=64, size="1GB")
    with pytest.raises(ScenarioError, match="does nothing here"):
        show("all-reduce", shelf, on="torus", chips=64, size="1GB", algorithm="ring")


def test_one_rack_needs_no_network(shelf: Catalog) -> None:
    found = show("all-reduce", shelf, on="nvl72", chips=72, size="8GiB")
    assert found.results["algorithm"] == "NVLS"
    assert found.results["busbw_bytes_per_s"] == pytest.approx(835e9, rel=0.15)


@pytest.mark.parametrize(
    "kind", ["reduce-scatter", "broadcast", "reduce", "send-recv", "barrier", "all_gather"]
)
@pytest.mark.parametrize("on", [None, "tree", "rail-only", "dragonfly"])
def test_every_collective_has_an_answer(kind: str, on: str | None, shelf: Catalog) -> None:
    assert show(kind, shelf, chips=64, size="1MB", on=on).results["time_s"]


@pytest.mark.parametrize(
    ("asked", "field", "words"),
    [
        ({"chips": 0, "size": "1GB"}, "chips", "at least 1"),
        ({"chips": 1, "size": "1GB"}, "chips", "moves nothing"),
        ({"chips": 16, "size": "-1GB"}, "size", "above 0"),
        ({"chips": 16, "size": "much"}, "size", "size"),
        ({"chips": 16}, "size", "how large"),
        ({"size": "1GB"}, "chips", "how many chips"),
        ({"chips": 16, "size": "1GB", "algorithm": "magic"}, "algorithm", "there is no"),
        ({"chips": 16, "size": "1GB", "version": "new"}, "version", "cannot be read"),
        ({"chips": 16, "size": "1GB", "on": "knot"}, "on", "not a topology"),
        (
            {"chips": 16, "size": "1GB", "oversubscription": "2:1"},
            "oversubscription",
            "does nothing here: it needs",
        ),
        (
            {"chips": 16, "size": "1GB", "on": "dragonfly", "oversubscription": "2:1"},
            "oversubscription",
            "has no",
        ),
        ({"chips": 64, "size": "1GB", "on": "fat-tree", "sides": "4x4x4"}, "sides", "has no sides"),
        (
            {"chips": 1024, "size": "1GB", "on": "fat-tree", "oversubscription": "1:1,2:1"},
            "oversubscription",
            "tiers",
        ),
        ({"chips": 90_000, "size": "1GB", "on": "meta-24k-roce"}, "chips", "has 24,576 chips"),
        ({"size": "1GB", "on": "meta-24k-roce", "chip": "b200"}, "chip", "was built of"),
        ({"experts": 64, "tokens": 8, "topk": 2, "hidden": 8}, "experts", "sizes an all-to-all"),
        ({"chips": 16, "size": "1GB", "tokens": 8}, "tokens", "does nothing here: it needs"),
    ],
)
def test_bad_input_names_the_field_and_what_is_allowed(
    asked: dict[str, str | int], field: str, words: str, shelf: Catalog
) -> None:
    with pytest.raises(DatahallError, match=words) as caught:
        show("all-reduce", shelf, **asked)
    assert caught.value.field == field or not field


def test_moe_needs_all_of_its_numbers(shelf: Catalog) -> None:
    with pytest.raises(ScenarioError, match="topk, hidden are missing"):
        show("all-to-all", shelf, experts=64, tokens=1024)
    with pytest.raises(ScenarioError, match="64 experts on 8 chips"):
        show("all-to-all", shelf, experts=64, tokens=1024, topk=2, hidden=8, chips=8)


CASES = (
    {"collective": "all-reduce", "chips": "1024", "size": "1GB"},
    {"collective": "all-gather", "on": "fat-tree", "chips": "512", "chip": "h200-sxm", "size": "64MiB"},
    {"collective": "all-to-all", "on": "clos", "chips": "512", "oversubscription": "2:1", "size": "1GB"},
    {"collective": "all-to-all", "experts": "64", "tokens": "2^20", "topk": "2", "hidden": "4096"},
    {"collective": "all-reduce", "on": "torus", "chips": "64", "sides": "4x4x4", "size": "1GB"},
    {
        "collective": "all-reduce",
        "on": "rail-optimised",
        "chips": "256",
        "size": "1GB",
        "failure": "nics=0-1",
    },
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case['collective']}-{case.get('on', 'none')}")
def test_every_border_gives_the_same_answer(case: dict[str, str], shelf: Catalog) -> None:
    asked_everywhere("show collective", case, shelf)


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case['collective']}-{case.get('on', 'none')}")
def test_follow_up_commands_run(case: dict[str, str], shelf: Catalog) -> None:
    found = dh.show_collective(**case, catalog=shelf)
    for line in found.next_commands:
        if "validate" not in line:
            assert runs(line), line


def test_the_level_of_constants_that_was_asked_is_taken(shelf: Catalog) -> None:
    usual = show("all-reduce", shelf, on="fat-tree", chips=64, size="64MB")
    bare = show("all-reduce", shelf, on="fat-tree", chips=64, size="64MB", level="datasheet")
    assert usual.results["time_s"] != bare.results["time_s"]
    assert bare.figure is not None
    assert bare.figure.basis == "datasheet only"
    older = show("all-reduce", shelf, on="fat-tree", chips=64, size="64MB", version="2.12")
    assert older.results["time_s"] != usual.results["time_s"]


def test_textbooks_send_over_all_ports_of_a_domain(shelf: Catalog) -> None:
    """Two domains of eight: what goes between them has eight ports, so faster ports make nothing slower."""
    system = cluster_from(FabricDesign(chips=16), shelf).system
    fast = msgspec.structs.replace(system, nic_bytes_per_s=2 * system.nic_bytes_per_s)
    one = {found.name: found.time_s for found in textbook_times(system, "all-reduce", 1e11, 16)}
    # halving and doubling pass 2(n-1)/n of the array, between domains over what the ports of eight chips carry
    share = network(system).share[2]
    rate = min(system.inside.simple.bytes_per_s, 8 * system.nic_bytes_per_s * share)
    assert one["halving-doubling"] == pytest.approx(2 * 15 / 16 * 1e11 / rate, rel=1e-3)
    two = {found.name: found.time_s for found in textbook_times(fast, "all-reduce", 1e11, 16)}
    assert all(two[name] <= one[name] for name in one)


STRENGTH = {"datasheet": "datasheet only", "family": "family-calibrated", "measured": "measured"}


@pytest.mark.parametrize("level", STRENGTH)
@pytest.mark.parametrize("chip", ["h100-sxm", "b200-sxm", "a100-sxm-80gb", "gb200", "mi300x", "l40s"])
@pytest.mark.parametrize("chips", [2, 512])
def test_constants_of_a_level_are_those_or_there_are_none(
    level: str, chip: str, chips: int, shelf: Catalog
) -> None:
    """A family's constants do not stand in for measured ones, nor generic ones for a family's."""
    blamed = ""
    try:
        found = show("all-reduce", shelf, size="1GB", chips=chips, chip=chip, level=level).results["level"]
    except DatahallError as error:
        found, blamed = "", error.field
    assert (found, blamed) in {(STRENGTH[level], ""), ("", "level")}


def test_measured_constants_of_a_domain_do_not_reach_over_the_network(shelf: Catalog) -> None:
    asked = {"size": "1GB", "chip": "h100-sxm", "level": "measured"}
    assert show("all-reduce", shelf, chips=8, **asked).results["level"] == "measured"
    with pytest.raises(ScenarioError, match="the network of h100-sxm has no measured constants") as caught:
        show("all-reduce", shelf, chips=64, **asked)
    assert "at most chips=8" in caught.value.hint


def test_training_on_tpus_stands_on_their_torus_and_serving_says_that_it_does_not(shelf: Catalog) -> None:
    run = {"chip": "tpu-v5p", "chips": 512, "tp": 4}
    plain, on_torus, on_tree = (
        dh.simulate_train("llama-3.1-8b", **run, **on, catalog=shelf)
        for on in ({}, {"on": "torus"}, {"on": "fat-tree"})
    )
    assert plain.results["step_s"] == pytest.approx(on_torus.results["step_s"])
    assert plain.results["step_s"] != pytest.approx(on_tree.results["step_s"], rel=1e-6)
    assert any("a 8×8×8 torus" in note for note in plain.notes)
    assert not any("does nothing" in note for note in (*on_torus.notes, *on_tree.notes))
    held = {"rate": 0.5, "isl": 512, "osl": 64}
    for chip, told in (("tpu-v6e", True), ("h100-sxm", False)):
        served = dh.plan_serve("llama-3.1-70b", chips=[chip], **held, catalog=shelf)
        assert any("a torus, which serving does not know" in note for note in served.notes) == told


@pytest.mark.parametrize(
    ("on", "chip", "chips"),
    [
        ("hyperx", "h100-sxm", 72), ("hyperx", "gb200", 1152), ("dragonfly", "gb200", 100), ("tree", "gb200", 100),
        ("hyperx", "h100-sxm", 128), ("dragonfly", "h100-sxm", 1000), ("fat-tree", "h100-sxm", 1000),
    ],
)  # fmt: skip
def test_links_are_counted_whole_or_said_to_be_a_mean(on: str, chip: str, chips: int, shelf: Catalog) -> None:
    """A domain that hangs on several leaves has a share of their links: 2.67 of them are no number of links."""
    figure = show("all-reduce", shelf, on=on, chip=chip, chips=chips, size="1GB").figure
    assert figure is not None
    links = [part for _, part in figure.walk() if part.name.startswith("links ") and part.unit == "count"]
    assert links
    for part in links:
        assert ("in the mean" in part.name) == (part.value != pytest.approx(round(part.value)))


@pytest.mark.parametrize("size", ["64KB", "1MB", "4MB", "16MB", "256MB", "4GB"])
@pytest.mark.parametrize(
    "asked", [{"chips": 8}, {"chips": 64}, {"chips": 1024, "chip": "gb200"}, {"chips": 16, "chip": "mi300x"}]
)
def test_what_is_said_to_be_faster_is_in_the_table(
    asked: dict[str, object], size: str, shelf: Catalog
) -> None:
    for kind in ("all-reduce", "all-gather"):
        found = show(kind, shelf, **asked, size=size)
        said = [note for note in found.notes if "would be faster by our times" in note]
        rows = {str(row[0]): row[1] for row in found.tables[0].rows}
        for note in said:
            name = note.removesuffix(" would be faster by our times").rsplit("; ", 1)[1]
            assert float(rows[name]) < float(str(found.results["time_s"]))  # type: ignore[arg-type]
