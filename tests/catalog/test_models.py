"""The language models of the catalogue: they load, cite, expand to layers, and weigh what makers say."""

from __future__ import annotations

import math
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from datahall.catalog import document
from datahall.catalog.document import Value
from datahall.catalog.entries import layer_pattern
from datahall.catalog.entries.layer_pattern import LayerKeys
from datahall.catalog.entries.model import Model, Quantisation
from datahall.catalog.entries.model_entry import read_model
from datahall.catalog.fact import Entry
from datahall.catalog.index import folded
from datahall.units import parse
from datahall.workload.parameters import count_parameters

DATA = Path(document.__file__).parent / "data" / "models"


@cache
def shipped() -> dict[str, tuple[Model, dict[str, Value]]]:
    """Each model with the table it was read from."""
    found: dict[str, tuple[Model, dict[str, Value]]] = {}
    for path in sorted(DATA.glob("*.toml")):
        read = document.read(path)
        tables = read.content["model"]
        assert isinstance(tables, dict)
        for name, table in tables.items():
            assert isinstance(table, dict)
            entry = Entry(read, ("model", name), {}, {}, {}, [])
            model = read_model(entry, name, table)
            assert model is not None, entry.problems
            assert name not in found, f"{name} is there twice"
            found[name] = model, table
    return found


def printed(raw: Value) -> str:
    """A published figure as its source prints it: "1.3B"."""
    return str(raw["value"] if isinstance(raw, dict) else raw)


def half_unit(text: str) -> float:
    """Half of the last digit that is printed: a figure is not known more closely than that."""
    digits = text.rstrip("kKMBGT ")
    decimals = len(digits.partition(".")[2])
    suffix = text[len(digits) :].strip()
    return 0.5 * parse(f"1{suffix}", "parameters") * 10.0**-decimals


@pytest.mark.parametrize(
    ("text", "half"), [("1.3B", 0.05e9), ("175B", 0.5e9), ("1008.0B", 0.05e9), ("8030261248", 0.5)]
)
def test_printed_precision_is_half_of_the_last_digit(text: str, half: float) -> None:
    assert half_unit(text) == pytest.approx(half)


@pytest.mark.parametrize("name", shipped())
def test_parameters_agree_with_the_published_figure(name: str) -> None:
    """Within 0.5 %, or within the printed precision where the source rounds more coarsely than that."""
    model, table = shipped()[name]
    counted = count_parameters(model).as_published(model.published_basis)
    tolerance = max(0.005 * model.published_parameters, half_unit(printed(table["published_parameters"])))
    assert counted == pytest.approx(model.published_parameters, abs=tolerance)


@pytest.mark.parametrize("name", [name for name, (model, _) in shipped().items() if model.moe])
def test_active_parameters_agree_with_the_published_figure(name: str) -> None:
    """Within 3 %, or within the printed precision ("3B" is 2.5B to 3.5B)."""
    model, table = shipped()[name]
    if not model.published_active_parameters:
        assert name == "grok-1"  # its maker says only that a quarter of the weights is active
        return
    active = count_parameters(model).as_published(model.published_active_basis, active=True)
    text = printed(table["published_active_parameters"])
    tolerance = max(0.03 * model.published_active_parameters, half_unit(text))
    assert active == pytest.approx(model.published_active_parameters, abs=tolerance)


def test_the_catalogue_is_broad() -> None:
    assert len(shipped()) >= 75
    assert len({model.family for model, _ in shipped().values()}) >= 20


def test_every_name_and_alias_means_one_model() -> None:
    owner: dict[str, str] = {}
    for name, (model, _) in shipped().items():
        for spelling in {folded(text) for text in (name, *model.aliases, model.title)}:
            assert owner.setdefault(spelling, name) == name


@pytest.mark.parametrize("name", shipped())
def test_every_number_has_a_source(name: str) -> None:
    model, _ = shipped()[name]
    for field in ("num_layers", "hidden", "num_heads", "vocab", "max_context", "published_parameters"):
        assert model.facts[field].source.title
        assert model.facts[field].source.date
    for part, value in (("moe", model.moe), ("mla", model.mla), ("recurrent", model.recurrent)):
        assert (value is None) == (not any(key.startswith(f"{part}.") for key in model.facts))


def test_layers_follow_the_short_keys() -> None:
    windows = [layer.window for layer in shipped()["gemma-3-12b"][0].layers]
    assert windows[:7] == [1024, 1024, 1024, 1024, 1024, 0, 1024]
    assert [layer.mlp for layer in shipped()["deepseek-v3"][0].layers[:5]] == ["dense"] * 3 + ["moe"] * 2
    assert [layer.mlp for layer in shipped()["llama-4-maverick"][0].layers[:3]] == ["dense", "moe", "dense"]
    mixers = [layer.mixer for layer in shipped()["qwen3-next-80b-a3b"][0].layers]
    assert mixers.count("full") == 12
    assert mixers[3] == "full"
    hybrid = shipped()["nemotron-h-8b"][0].layers
    assert (hybrid[0].mixer, hybrid[1].mixer, hybrid[1].mlp, hybrid[7].mixer) == (
        "mamba",
        "none",
        "dense",
        "full",
    )


@given(st.integers(1, 200), st.integers(0, 12), st.integers(0, 10), st.integers(1, 4))
def test_expansion_gives_one_layer_each(
    num_layers: int, every: int, first_dense: int, moe_every: int
) -> None:
    keys = LayerKeys(
        num_layers=num_layers, window=64, global_every=every, first_dense_layers=first_dense,
        moe_every=moe_every, has_moe=True,
    )  # fmt: skip
    layers = layer_pattern.expand(keys)
    assert len(layers) == num_layers
    assert sum(layer.mixer == "full" for layer in layers) == (num_layers // every if every else 0)
    routed = sum(layer.mlp == "moe" for layer in layers)
    assert routed == max(0, num_layers // moe_every - first_dense // moe_every)


BASE = """
[model.tiny]
title = "Tiny"
family = "test"
year = 2026
num_layers = 4
hidden = 64
num_heads = 4
ffn = 256
vocab = 1000
max_context = 512
published_parameters = "0.3M"
source = { title = "a test", date = "2026-01" }
"""


def read(text: str) -> tuple[Model | None, list[str]]:
    parsed = document.parse(text, "my.toml")
    tables = parsed.content["model"]
    assert isinstance(tables, dict)
    table = tables["tiny"]
    assert isinstance(table, dict)
    entry = Entry(parsed, ("model", "tiny"), {}, {}, {}, [])
    return read_model(entry, "tiny", table), [repr(problem) for problem in entry.problems]


def test_what_follows_from_other_keys_is_filled_in() -> None:
    model, problems = read(BASE)
    assert problems == []
    assert model is not None
    assert (model.num_kv_heads, model.head_dim) == (4, 16)


def test_all_problems_of_an_entry_are_reported_with_their_lines() -> None:
    text = BASE.replace("hidden = 64", "hidden = -64").replace("num_heads = 4", 'num_heads = "four"')
    model, problems = read(text + 'nrom = "rmsnorm"\nmoe = { num_experts = 8, top_k = 2 }\n')
    assert model is None
    assert len(problems) == 4
    assert 'my.toml:7: "hidden"' in problems[0]
    assert 'my.toml:8: "num_heads"' in problems[1]
    assert 'did you mean "norm"?' in problems[2]
    assert '"expert_ffn" is missing' in problems[3]


@pytest.mark.parametrize(
    ("extra", "message"),
    [
        ("num_kv_heads = 3\n", "3 key-value heads do not divide 4 heads"),
        ("global_every = 2\n", '"global_every" needs "window"'),
        ("window = 8\nglobal_layers = [4]\n", "goes past layer 3"),
        ("window = 8\nglobal_layers = [-1]\n", "a list of layer numbers"),
        ('pattern = "M-X"\n', "unknown letters X"),
        ('pattern = "--"\n', "names 2 layers of 4"),
        ('pattern = "M-M-"\n', "no [recurrent] table"),
        ('pattern = "E-E-"\n', "no [moe] table"),
        ("attention_every = 2\n", "no [recurrent] table"),
        ("first_dense_layers = 1\n", "needs a [moe] table"),
        ("moe = { num_experts = 2, top_k = 3, expert_ffn = 8 }\n", "3 experts per token of 2"),
        ("moe = { num_experts = 2, top_k = 1, expert_ffn = 8, shared_ffn = 8 }\n", "need each other"),
        ("moe = 3\n", '"moe" must be a table'),
        ('published_basis = "sum"\n', "without tables"),
        ("num_positions = 0\n", "at least 1"),
    ],
)
def test_contradictions_are_problems(extra: str, message: str) -> None:
    model, problems = read(BASE + extra)
    assert model is None
    assert any(message in problem for problem in problems), problems


@pytest.mark.parametrize("line", ["source", "published_parameters", "ffn"])
def test_what_is_needed_must_be_there(line: str) -> None:
    kept = "\n".join(text for text in BASE.splitlines() if not text.startswith(line))
    model, problems = read(kept)
    assert model is None
    assert any(line in problem for problem in problems)


def test_heads_that_do_not_divide_the_width_need_a_head_width() -> None:
    assert read(BASE.replace("num_heads = 4", "num_heads = 5"))[0] is None
    model, _ = read(BASE.replace("num_heads = 4", "num_heads = 5\nhead_dim = 16"))
    assert model is not None
    assert math.prod((model.num_heads, model.head_dim)) == 80


def checkpoint(written: str) -> tuple[Model | None, list[str]]:
    """A small model with what is written of its checkpoint."""
    text = f"""[model.x]
title = "X"
family = "x"
year = 2026
num_layers = 2
hidden = 64
num_heads = 4
ffn = 128
vocab = 100
max_context = 512
published_parameters = 100000
{written}
source = {{ title = "a config.json", date = "2026-01" }}
"""
    read = document.parse(text, "x.toml")
    table = read.content["model"]["x"]  # type: ignore[index,call-overload]
    entry = Entry(read, ("model", "x"), {}, {}, {}, [])
    model = read_model(entry, "x", table)  # type: ignore[arg-type]
    return model, [repr(problem) for problem in entry.problems]


def test_a_checkpoint_is_a_fact_with_a_source_of_its_own_or_that_of_the_entry() -> None:
    model, problems = checkpoint('quantisation = { format = "fp8", block = [128, 64] }')
    assert model is not None, problems
    assert model.quantisation == Quantisation(format="fp8", block=(128, 64))
    assert model.facts["quantisation.rows"].value == 128
    assert model.facts["quantisation.columns"].value == 64
    assert model.facts["quantisation.rows"].source.title == "a config.json"
    own = 'fp8_checkpoint = { format = "fp8", block = [128, 128], source = { title = "another", date = "2026-02" } }'
    model, problems = checkpoint(own)
    assert model is not None, problems
    assert model.quantisation is None
    assert model.facts["fp8_checkpoint.rows"].source.title == "another"


@pytest.mark.parametrize(
    ("block", "by_block"),
    [((128, 128), True), ((2, 2), True), ((1, 128), False), ((128, 1), False), ((0, 0), False)],
)
def test_a_scale_per_row_or_tensor_is_no_block(block: tuple[int, int], by_block: bool) -> None:
    assert Quantisation(format="fp8", block=block).block_scaled is by_block


@pytest.mark.parametrize(
    ("written", "words"),
    [
        ('quantisation = "fp8"', '"quantisation" must be a table'),
        ('quantisation = { format = "fp9" }', 'x.toml:12: "format" is "fp9"; one of fp8'),
        ("quantisation = { block = [128, 128] }", '"format" is missing'),
        ('quantisation = { format = "fp8", block = [128] }', "two whole numbers"),
        ('quantisation = { format = "fp8", block = [128, -1] }', "two whole numbers"),
        ('quantisation = { format = "fp8", blok = [1, 1] }', 'did you mean "block"'),
    ],
)
def test_a_checkpoint_that_cannot_be_read_is_a_problem(written: str, words: str) -> None:
    model, problems = checkpoint(written)
    assert model is None
    assert any(words in problem for problem in problems), problems
