"""Serving: one question has one answer, chains add up, a plan's own next command agrees with it."""

from __future__ import annotations

import json
import re
from itertools import pairwise
from math import ceil
from pathlib import Path
from typing import Any

import pytest
from tests.answers.borders import asked_everywhere
from tests.first_look.conftest import Run
from tests.first_look.figures import table, waits_for
from tests.results import number

import datahall as dh
from datahall.answer import Answer
from datahall.answers.ask import form_of
from datahall.answers.verbs import VERBS
from datahall.breakdown import Breakdown, false_nodes
from datahall.catalog import Catalog
from datahall.scenario.kinds import Percentile, Share

CONFIGS = Path(__file__).parents[1] / "catalog" / "configs"
GOLDEN = {"users": 10_000, "ttft": "1s", "tpot": "50ms", "chips": "b200"}


def folder(path: Path, name: str, **changed: object) -> str:
    """A model's config.json in a folder of any name; a key that is changed to None is left out."""
    config = json.loads((CONFIGS / "deepseek-v3.json").read_text()) | changed
    (path / name).mkdir()
    (path / name / "config.json").write_text(
        json.dumps({key: one for key, one in config.items() if one is not None})
    )
    return str(path / name)


BLOCK_SCALED: tuple[tuple[str, dict[str, str]], ...] = (
    ("simulate serve", {"rate": "2", "chip": "h200", "tp": "8", "ep": "8", "requests": "300"}),
    ("plan serve", {"rate": "2", "chips": "h200"}),
    ("show fit", {"chip": "h200", "tp": "8"}),
)


@pytest.mark.parametrize(("verb", "asked"), BLOCK_SCALED, ids=[verb for verb, _ in BLOCK_SCALED])
def test_flags_file_json_and_python_have_one_answer(verb: str, asked: dict[str, str], shelf: Catalog) -> None:
    """DeepSeek-V3 in fp8 on H200s was served by flags and by nobody's file."""
    asked_everywhere(verb, {"model": "deepseek-v3", "precision": "fp8", **asked}, shelf)


@pytest.mark.parametrize(("verb", "asked"), BLOCK_SCALED, ids=[verb for verb, _ in BLOCK_SCALED])
def test_a_folder_may_be_called_anything(
    verb: str, asked: dict[str, str], shelf: Catalog, tmp_path: Path
) -> None:
    known, other = (
        getattr(dh, verb.replace(" ", "_"))(folder(tmp_path, name), precision="fp8", **asked, catalog=shelf)
        for name in ("deepseek-v3", "dsv3")
    )
    assert known.results == other.results


def test_the_blocks_of_a_format_are_read_from_the_file(shelf: Catalog, tmp_path: Path) -> None:
    """The file says how its weights are scaled; without that line it is another format."""
    asked = {"precision": "fp8", "rate": 2, "chip": "h200", "tp": 8, "requests": 200}
    blocks = json.loads((CONFIGS / "deepseek-v3.json").read_text())["quantization_config"]
    whole = {key: one for key, one in blocks.items() if key != "weight_block_size"}
    ours, same, bare = (
        number(dh.simulate_serve(model, **asked, catalog=shelf), "tpot_mean_s")
        for model in (
            "deepseek-v3",
            folder(tmp_path, "blocks"),
            folder(tmp_path, "whole", quantization_config=whole),
        )
    )
    assert same == pytest.approx(ours, rel=1e-9)
    assert bare != same


@pytest.mark.parametrize(
    ("model", "asked", "most"),
    [
        ("deepseek-v3", {"chip": "h200", "tp": 8, "precision": "fp8"}, 2.0),
        ("llama-3.1-70b", {"chip": "h200", "tp": 2, "precision": "bf16"}, 4.0),
        ("qwen3-30b-a3b", {"chip": "h200", "tp": 1, "precision": "fp8"}, 2.0),
    ],
)
def test_weights_of_four_bits_save_no_more_than_their_bytes(
    model: str, asked: dict[str, Any], most: float, shelf: Catalog
) -> None:
    """8 bits become 4: a step that only reads weights is twice as fast, no more."""
    found = dh.show_techniques(model, rate=2, **asked, catalog=shelf)
    rows = {str(row["technique"]): row["tpot_s"] for row in table(found, "alone").records()}
    as_it_is, quarter = rows["as it is"], rows["int4 weights"]
    assert isinstance(as_it_is, float)
    assert isinstance(quarter, float)
    assert as_it_is / quarter <= most


ANSWERS: dict[str, dict[str, Any]] = {
    "plan_serve": {"model": "llama-3.1-70b", **GOLDEN},
    "plan_train": {"model": "llama-3.1-8b", "tokens": "1T", "chips": 64, "chip": "h100-sxm"},
    "show_fit": {"model": "llama-3.1-70b", "chip": "h100-sxm"},
    "show_roofline": {"chip": "h200", "model": "llama-3.1-8b"},
    "show_memory": {"model": "llama-3.1-8b", "chip": "h100-sxm", "tp": 2},
    "show_collective": {"collective": "all-reduce", "chips": 1024, "size": "1GB", "on": "fat-tree"},
    "show_techniques": {"model": "llama-3.1-8b", "rate": 5},
    "show_fabric": {"topologies": "fat-tree", "chips": 512},
    "simulate_serve": {"model": "llama-3.1-8b", "rate": 2, "requests": 200},
    "simulate_train": {"model": "llama-3.1-8b", "chips": 64, "tp": 2},
}


def answer(verb: str, shelf: Catalog) -> tuple[Answer, Breakdown]:
    found = getattr(dh, verb)(**ANSWERS[verb], catalog=shelf)
    assert isinstance(found, Answer)
    assert found.figure is not None
    return found, found.figure


@pytest.mark.parametrize("verb", ANSWERS)
def test_a_chain_adds_up_and_every_leaf_says_where_it_is_from(verb: str, shelf: Catalog) -> None:
    _, figure = answer(verb, shelf)
    assert not false_nodes(figure)
    leaves = [node for _, node in figure.walk() if not node.parts]
    assert leaves
    for leaf in leaves:
        assert leaf.origin
        assert leaf.origin != "computed", f"{leaf.name} is computed from nothing"
        assert leaf.origin != "fact" or leaf.sources, f"{leaf.name} is a fact without a source"


def test_the_chips_of_a_plan_are_its_replicas_and_all_of_them_are_in_the_chain(shelf: Catalog) -> None:
    """⌈load / (what one holds · what is kept free)⌉, and those that simulation added, make the figure."""
    plan, figure = answer("plan_serve", shelf)
    nodes = {node.name: node.value for _, node in figure.walk()}
    replicas = number(plan, "num_replicas")
    assert figure.value == number(plan, "num_chips") == replicas * number(plan, "tp") * number(plan, "pp")
    assert replicas == nodes["replicas in closed form"] + nodes["replicas that simulation added"]
    held = nodes["one replica holds, in closed form"] * nodes["share that is used"]
    assert nodes["replicas in closed form"] == ceil(nodes["offered"] / held)
    assert nodes["offered"] == pytest.approx(10_000 / (nodes["tokens of an answer"] * 0.05))


def test_a_transfer_is_bytes_over_a_rate(shelf: Catalog) -> None:
    """`transfer = time − latency` explains nothing: no part of a collective is what is left of its total."""
    _, figure = answer("show_collective", shelf)
    for _, node in figure.walk():
        if "transfer" in node.name and node.parts:
            assert "−" not in node.formula, f"{node.name} = {node.formula}"


@pytest.mark.parametrize("model", ["llama-3.1-8b", "qwen3-30b-a3b"])
def test_ten_times_the_users_take_ten_times_the_chips(model: str, shelf: Catalog) -> None:
    few, many = (
        number(dh.plan_serve(model, users=users, chips="h100-sxm", catalog=shelf), "num_chips")
        for users in (10_000, 100_000)
    )
    assert 10 * (few - 1) < many <= 10 * few  # the few are rounded up to a whole chip


def test_fifty_requests_at_a_thousand_a_second_are_no_service(datahall: Run) -> None:
    """One H100 holds some twenty a second; that fifty of them were answered in time says nothing of a thousand."""
    done = datahall(
        *["simulate", "serve", "llama-3.1-8b", "--rate", "1000", "--requests", "50", "--chip", "h100-sxm"]
    )
    assert done.code == 1


def test_a_service_that_keeps_up_puts_out_what_comes_in(shelf: Catalog) -> None:
    """A stable run answers as many requests a second as are offered."""
    plan = dh.plan_serve("llama-3.1-8b", rate=300, chips="h100-sxm", catalog=shelf)
    found = dh.simulate_serve(
        "llama-3.1-8b",
        rate=300,
        chip="h100-sxm",
        precision=plan.results["precision"],
        replicas=int(number(plan, "num_replicas")),
        requests=20_000,
        catalog=shelf,
    )
    assert number(found, "requests_per_s") == pytest.approx(300, rel=0.03)


ENGINES = ("vllm", "sglang", "trtllm")


@pytest.mark.parametrize("chunked", [True, False])
@pytest.mark.parametrize("engine", ENGINES)
def test_throughput_is_continuous_across_the_token_budget(engine: str, chunked: bool, shelf: Catalog) -> None:
    """A prompt that is exactly as long as the budget does not starve; one token more costs a little."""
    budget = 4096
    rates = [
        number(
            dh.simulate_serve(
                "llama-3.1-8b",
                chip="h100-sxm",
                engine=engine,
                chunked_prefill=chunked,
                token_budget=budget,
                rate=50,
                isl=tokens,
                osl=100,
                requests=150,
                catalog=shelf,
            ),
            "output_tokens_per_s",
        )
        for tokens in (budget - 192, budget - 1, budget, *((budget + 1, budget + 192) if chunked else ()))
    ]
    for before, after in pairwise(rates):
        assert after == pytest.approx(before, rel=0.1)


SHARES = sorted(
    {
        (verb.name, field.name)
        for verb in VERBS
        for field in form_of(verb.name).fields.values()
        if isinstance(field.kind, Share) and not isinstance(field.kind, Percentile) and field.kind.most <= 1
    }
)


@pytest.mark.parametrize(("verb", "name"), SHARES)
def test_no_share_is_above_all(verb: str, name: str) -> None:
    """`--cached 150%` became 2 %: refused wherever a share is asked for, as 150 % and as 1.5."""
    kind = form_of(verb).fields[name].kind
    assert isinstance(kind, Share)
    for said in ("150%", "150 %", 1.5, "100.01 %"):
        with pytest.raises(dh.DatahallError):
            kind.read(said, None)  # type: ignore[arg-type]


def test_a_cached_share_and_an_acceptance_are_taken_up_to_their_ends(datahall: Run) -> None:
    question = ["show", "techniques", "llama-3.1-8b", "--rate", "5"]
    assert datahall(*question, "--cached", "150%").code == 2
    assert datahall(*question, "--draft", "ngram", "--acceptance", "150%").code == 2
    assert datahall(*question, "--draft", "ngram", "--acceptance", "100%").code == 0


def test_more_drafts_that_are_kept_are_never_slower(shelf: Catalog) -> None:
    held = [
        number(
            dh.simulate_serve(
                "llama-3.1-8b", rate=1, draft="ngram", acceptance=share, requests=100, catalog=shelf
            ),
            "tpot_mean_s",
        )
        for share in ("10 %", "50 %", "90 %", "100 %")
    ]
    assert held == sorted(held, reverse=True)


NO_ROOM = (
    "show roofline groq-lpu --model llama-3.1-8b",
    "show roofline h200 --model llama-3.1-405b",
    "show roofline l40s --model llama-3.1-70b",
    "show roofline h200 --model deepseek-v3 --precision fp8",
    "simulate serve llama-3.1-405b --chip h200 --tp 1 --rate 1",
    "plan serve llama-3.1-405b --rate 1 --chips l40s --tp 1",
    "show techniques llama-3.1-405b --chip h200 --tp 1 --rate 1",
    "show fit llama-3.1-405b --chip h200 --tp 1",
    "simulate train llama-3.1-405b --chips 64 --tp 8",
    "simulate train llama-3.1-8b --chips 64",
    "show memory llama-3.1-405b --chip h100-sxm --tp 8",
)


@pytest.mark.parametrize("line", NO_ROOM)
def test_what_does_not_fit_has_no_speed(line: str, datahall: Run) -> None:
    done = datahall(*line.split())
    assert done.code == 1
    said = done.out + done.err
    first = re.split(r"\n\s*\n", said)[0]
    assert re.search(
        r"does not fit|no room|do not fit|does not hold|are missing|cannot hold|not fit", first
    ), first
    assert not re.search(r"tokens/s|MFU|ms per token|takes .* (s|ms|min):", first), first


@waits_for("the efficiency of chips that were never measured, found by leaving one chip out")
def test_a_datasheet_alone_plans_no_fewer_chips_than_a_measured_chip_that_is_alike(shelf: Catalog) -> None:
    """MI300X and H200 differ by less in bandwidth than the kernels of a chip without measurements may."""
    plan = dh.plan_serve("llama-3.1-70b", users=10_000, chips="h200,mi300x", catalog=shelf)
    chips = {row["chip"]: row["chips"] for row in table(plan, "the best of each chip").records()}
    assert chips["mi300x"] >= chips["h200-sxm"]  # type: ignore[operator]


def test_a_price_in_a_headline_is_one_that_can_be_paid_today(shelf: Catalog) -> None:
    """Not an auction's floor, not a report's estimate, and no older than what is called stale."""
    for chip in ("h100", "h200", "b200", "a100-sxm-80gb", "mi300x"):
        found = dh.catalog_prices(chip=chip, catalog=shelf)
        if found.results.get("lowest_usd_per_hour") is None:
            continue
        assert "auction" not in found.headline
        assert number(found, "lowest_age_s") <= number(found, "stale_after_s")


def test_the_memory_of_a_chip_is_one_number_or_two_with_names(shelf: Catalog) -> None:
    """The datasheet's 80 GB, and what software sees of it, which is said to be another thing."""
    sold = dh.show_chip("h100-sxm", catalog=shelf)
    seen = {
        round(number(found, "memory_bytes") + number(found, "headroom_bytes"), -6)
        for found in (
            dh.simulate_train("llama-3.1-8b", chips=64, tp=2, chip="h100-sxm", catalog=shelf),
            dh.plan_train("llama-3.1-8b", tokens="1T", chips=64, chip="h100-sxm", catalog=shelf),
        )
    }
    assert len(seen) == 1
    assert "80 GB" in sold.headline
    named = {
        str(row["quantity"]): row["value"]
        for one in sold.tables
        for row in one.records()
        if "quantity" in row
    }
    (usable,) = seen
    assert round(named["memory the driver reports"].value, -6) == usable  # type: ignore[union-attr]
    served = dh.show_fit("llama-3.1-8b", chip="h100-sxm", catalog=shelf).figure
    assert served is not None
    nodes = {node.name: node.value for _, node in served.walk()}
    assert round(nodes["memory of the chip"], -6) == usable
    assert nodes["memory that a program sees"] < usable  # the driver keeps some, and the chain says so
