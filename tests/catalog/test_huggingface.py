"""A config.json becomes the model that the catalogue describes, or an error that names all its problems."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from datahall.catalog import json_document
from datahall.catalog.catalog import Catalog
from datahall.catalog.entries.model import Model
from datahall.catalog.huggingface import FAMILIES, from_config
from datahall.errors import DatahallError, DocumentError, UnknownNameError
from datahall.workload.config import read_config
from datahall.workload.parameters import count_parameters
from datahall.workload.precision import Precision, block_scaled

CONFIGS = Path(__file__).parent / "configs"
CATALOG = Catalog(user=False)
# what a config does not say: names, dates and the makers' own figures
SAID_ELSEWHERE = {
    "name", "title", "family", "year", "aliases", "note", "facts", "published_parameters", "published_basis",
    "published_active_parameters", "published_active_basis", "fp8_checkpoint", "num_mtp_layers",
}  # fmt: skip


def test_layers_that_draft_are_read_where_a_config_says_them() -> None:
    stated = [
        path for path in sorted(CONFIGS.glob("*.json")) if '"num_nextn_predict_layers"' in path.read_text()
    ]
    assert len(stated) >= 3
    for path in stated:
        assert from_config(path).num_mtp_layers == CATALOG.model(path.stem).num_mtp_layers, path.stem
    assert from_config(CONFIGS / "deepseek-v3.json").num_mtp_layers == 1


@pytest.mark.parametrize("path", sorted(CONFIGS.glob("*.json")), ids=lambda path: path.stem)
def test_a_config_gives_the_model_of_the_catalogue(path: Path) -> None:
    read, known = from_config(path), CATALOG.model(path.stem)
    for field in set(Model.__struct_fields__) - SAID_ELSEWHERE:
        assert getattr(read, field) == getattr(known, field), field
    assert count_parameters(read) == count_parameters(known)


def test_what_a_config_of_nemotron_leaves_out_is_what_its_library_takes(tmp_path: Path) -> None:
    whole = json.loads((CONFIGS / "nemotron-h-8b.json").read_text())
    short = {key: whole[key] for key in whole.keys() - {"attention_head_dim", "num_key_value_heads"}}

    model = from_config(write(tmp_path, short))

    assert (model.head_dim, model.num_kv_heads) == (128, 8)


def test_every_family_has_a_config_here() -> None:
    assert {json.loads(path.read_text())["model_type"] for path in CONFIGS.glob("*.json")} | {
        "llama4_text", "gemma3_text"
    } == set(FAMILIES)  # fmt: skip


LLAMA = json.loads((CONFIGS / "llama-3.1-70b.json").read_text())
DEEPSEEK = json.loads((CONFIGS / "deepseek-v3.json").read_text())


def compressed(**weights: object) -> dict[str, object]:
    """What llm-compressor writes."""
    return {"quant_method": "compressed-tensors", "config_groups": {"group_0": {"weights": weights}}}


def write(folder: Path, content: object) -> Path:
    path = folder / "config.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content, indent=2), encoding="utf-8")
    return path


def problems(path: Path) -> list[str]:
    with pytest.raises(DocumentError) as caught:
        from_config(path)
    return [repr(problem).removeprefix(f"{path}:") for problem in caught.value.problems]


def test_a_model_is_what_the_file_says_wherever_it_lies(tmp_path: Path) -> None:
    for name in ("deepseek-v3", "dsv3"):
        (tmp_path / name).mkdir()
    one, other = (read_config(write(tmp_path / name, DEEPSEEK)) for name in ("deepseek-v3", "dsv3"))
    assert one == other
    assert one.name == "deepseek_v3 671B"


@pytest.mark.parametrize(
    ("called", "name"),
    [
        ("meta-llama/Llama-3.1-70B", "Llama-3.1-70B"),
        ("/home/me/run-7/", "run-7"),
        ("", "llama 70.6B"),
        ("./", "llama 70.6B"),
        (None, "llama 70.6B"),
    ],
)
def test_a_name_in_the_file_is_the_name(tmp_path: Path, called: str | None, name: str) -> None:
    assert read_config(write(tmp_path, LLAMA | {"_name_or_path": called})).name == name


@pytest.mark.parametrize(
    ("said", "read"),
    [
        ({"quant_method": "fp8", "weight_block_size": [128, 128], "fmt": "e4m3"}, ("fp8", (128, 128))),
        ({"quant_method": "fp8", "activation_scheme": "static"}, ("fp8", (0, 0))),
        ({"quant_method": "fbgemm_fp8"}, ("fp8", (0, 0))),
        ({"quant_method": "mxfp4"}, ("mxfp4", (1, 32))),
        ({"quant_method": "gptq", "bits": 4, "group_size": 128}, ("int4", (1, 128))),
        ({"quant_method": "awq", "bits": 4, "group_size": 64}, ("int4", (1, 64))),
        ({"quant_method": "gptq", "bits": 8, "group_size": -1}, ("int8", (0, 0))),
        ({"quant_method": "modelopt", "quant_algo": "NVFP4"}, ("nvfp4", (1, 16))),
        ({"quant_method": "modelopt", "quant_algo": "FP8"}, ("fp8", (0, 0))),
        (compressed(num_bits=8, type="float", strategy="channel"), ("fp8", (0, 0))),
        (
            compressed(num_bits=8, type="float", strategy="block", block_structure=[128, 128]),
            ("fp8", (128, 128)),
        ),
        (compressed(num_bits=4, type="int", strategy="group", group_size=32), ("int4", (1, 32))),
    ],
)
def test_the_format_of_a_checkpoint_is_read(
    tmp_path: Path, said: dict[str, object], read: tuple[str, tuple[int, int]]
) -> None:
    found = from_config(write(tmp_path, LLAMA | {"quantization_config": said})).quantisation
    assert found is not None
    assert (found.format, found.block) == read
    fp8 = Precision.named("fp8")
    model = from_config(write(tmp_path, LLAMA | {"quantization_config": said}))
    assert block_scaled(model, fp8) == (read == ("fp8", (128, 128)))


def test_a_wrapper_may_say_its_format_outside_its_text_model(tmp_path: Path) -> None:
    wrapper = json.loads((CONFIGS / "gemma-3-27b.json").read_text()) | {
        "quantization_config": {"quant_method": "fp8"}
    }
    found = from_config(write(tmp_path, wrapper)).quantisation
    assert found is not None
    assert found.format == "fp8"


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ({"quant_method": "tarot"}, "those that can be read: fp8, fbgemm_fp8, mxfp4"),
        ({}, '"quant_method" is missing'),
        ({"quant_method": "gptq", "bits": 3}, "integers of 4 or 8 bits are"),
        ({"quant_method": "fp8", "weight_block_size": [128]}, "must be two whole numbers"),
        (compressed(num_bits=2, type="int"), "fp8, int8, int4 and nvfp4 are"),
        ({"quant_method": "compressed-tensors"}, '"config_groups" is missing'),
    ],
)
def test_a_format_that_is_not_known_is_refused(tmp_path: Path, said: dict[str, object], message: str) -> None:
    path = write(tmp_path, LLAMA | {"quantization_config": said})
    assert any(message in problem for problem in problems(path))


def test_every_size_of_a_config_is_a_fact_of_it(tmp_path: Path) -> None:
    model = from_config(write(tmp_path, DEEPSEEK))
    assert model.facts["hidden"].value == model.hidden
    assert model.mla is not None
    assert model.facts["mla.kv_rank"].value == model.mla.kv_rank
    assert {fact.source.title for fact in model.facts.values()} == {"config.json"}


def test_every_problem_is_listed_with_its_line(tmp_path: Path) -> None:
    broken = {
        **LLAMA,
        "hidden_size": -1,
        "vocab_size": "many",
        "tie_word_embeddings": 1,
        "num_hidden_layer": 80,
    }
    del broken["num_hidden_layers"]
    path = write(tmp_path, broken)
    lines = path.read_text().splitlines()

    def line(key: str) -> int:
        return next(number for number, text in enumerate(lines, 1) if f'"{key}"' in text)

    found = problems(path)
    assert len(found) == 4
    assert f'{line("hidden_size")}: "hidden_size" must be a whole number of at least 1, not -1' in found
    assert f"{line('vocab_size')}: \"vocab_size\" must be a whole number of at least 1, not 'many'" in found
    assert f'{line("tie_word_embeddings")}: "tie_word_embeddings" must be true or false, not 1' in found
    assert '1: "num_hidden_layers" is missing; did you mean "num_hidden_layer"?' in found


def test_a_cut_off_file_says_where(tmp_path: Path) -> None:
    text = json.dumps(LLAMA, indent=2)
    for length in (len(text) - 2, len(text) // 2, 1):
        part = text[:length]
        (only,) = problems(write(tmp_path, part))
        assert only.startswith(f"{part.rstrip().count(chr(10)) + 1}: ")
        assert "cut off" in only


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "1: is empty"),
        ("[1]", "1: must hold one JSON object"),
        ('{\n "model_type": llama }', "2: is not JSON: Expecting value at column 16"),
        ({"hidden_size": 8}, '"model_type" is missing'),
        ({"model_type": 3}, '"model_type" must be a text, not 3'),
        ({"model_type": "gemma3", "text_config": [1]}, '"text_config" must be an object'),
    ],
)
def test_what_is_no_config_is_refused(tmp_path: Path, content: object, message: str) -> None:
    assert any(message in problem for problem in problems(write(tmp_path, content)))


def test_a_missing_file_and_a_binary_one(tmp_path: Path) -> None:
    with pytest.raises(DocumentError, match="cannot be read"):
        from_config(tmp_path / "none.json")
    (tmp_path / "config.json").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(DocumentError, match="not UTF-8"):
        from_config(tmp_path / "config.json")


def test_an_unknown_family_names_the_nearest(tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError) as caught:
        from_config(write(tmp_path, {"model_type": "qwen3_mo"}))
    assert "qwen3_moe" in caught.value.nearest
    assert caught.value.where.endswith("config.json:2")


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("llama-3.1-70b", {"num_key_value_heads": 7}, "7 key-value heads do not divide 64 heads"),
        ("llama-3.1-70b", {"num_attention_heads": 48}, "48 heads do not divide width 8192"),
        ("llama-3.1-70b", {"num_hidden_layers": True}, "not True"),
        ("llama-3.1-70b", {"num_hidden_layers": 80.5}, "not 80.5"),
        ("mixtral-8x7b", {"num_experts_per_tok": 9}, "9 experts per token of 8"),
        ("opt-6.7b", {"do_layer_norm_before": False}, "not modelled, and not guessed"),
        ("opt-6.7b", {"word_embed_proj_dim": 512}, "a token table narrower than the model"),
        ("phi-2", {"qk_layernorm": True}, "layer norms on queries and keys"),
        ("deepseek-v3", {"moe_layer_freq": 2}, "experts in some of the later layers only"),
        ("deepseek-v3", {"attention_bias": True}, "biases in latent attention"),
        ("gpt-oss-120b", {"layer_types": ["full_attention"]}, "names 1 layers of 36"),
        ("gpt-oss-120b", {"layer_types": ["wide"] * 36}, "wide is not one of"),
        ("gpt-oss-120b", {"layer_types": "all"}, "must be a list of texts"),
        ("nemotron-h-8b", {"hybrid_override_pattern": "MXM"}, "unknown letters X"),
        ("nemotron-h-8b", {"num_hidden_layers": 51}, "names 52 layers of 51"),
        ("nemotron-3-nano-30b-a3b", {"moe_latent_size": 1024}, "a narrower space"),
        ("nemotron-3-nano-30b-a3b", {"layers_block_type": ["conv"] * 52}, "unknown blocks conv"),
        ("llama-4-maverick", {"moe_layers": [0, 1]}, "other expert layers"),
        ("llama-4-maverick", {"no_rope_layers": [1, 0]}, "names 2 layers of 48"),
        ("qwen3-235b-a22b", {"use_sliding_window": True}, "not modelled"),
        ("mpt-7b", {"attn_config": {"qk_ln": True}}, "layer norms on queries and keys"),
        ("dbrx", {"ffn_config": {"moe_top_k": 4}}, '"moe_num_experts" is missing'),
        ("dbrx", {"ffn_config": 7}, '"ffn_config" must be an object'),
    ],
)
def test_what_does_not_fit_or_is_not_modelled(
    tmp_path: Path, name: str, change: dict[str, object], message: str
) -> None:
    config = json.loads((CONFIGS / f"{name}.json").read_text()) | change
    assert any(message in problem for problem in problems(write(tmp_path, config)))


def test_a_window_that_no_context_outgrows_is_no_window(tmp_path: Path) -> None:
    config = json.loads((CONFIGS / "phi-3-mini.json").read_text()) | {"sliding_window": 4096}
    assert {layer.mixer for layer in from_config(write(tmp_path, config)).layers} == {"full"}


def test_a_mistral_without_the_key_has_a_window_and_one_with_null_has_none(tmp_path: Path) -> None:
    config = json.loads((CONFIGS / "mistral-7b.json").read_text())
    del config["sliding_window"]
    assert from_config(write(tmp_path, config)).layers[0].window == 4096
    assert from_config(write(tmp_path, config | {"sliding_window": None})).layers[0].mixer == "full"


def test_qwen_windows_start_past_the_named_layer(tmp_path: Path) -> None:
    config = json.loads((CONFIGS / "qwen2.5-32b.json").read_text())
    config |= {"use_sliding_window": True, "sliding_window": 1024, "max_window_layers": 60}
    assert [layer.window for layer in from_config(write(tmp_path, config)).layers[58:62]] == [
        0,
        0,
        1024,
        1024,
    ]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(st.dictionaries(st.text(), JSON, max_size=5))
def test_every_key_has_the_line_it_stands_on(content: dict[str, object]) -> None:
    text = json.dumps(content, indent=1)
    lines = text.splitlines()
    index = json_document.parse(text, "q.json").lines

    def walk(value: object, path: tuple[str, ...]) -> None:
        if isinstance(value, dict):
            for key, inner in value.items():
                assert lines[index[(*path, key)] - 1].lstrip().startswith(json.dumps(key))
                walk(inner, (*path, key))
        elif isinstance(value, list):
            for position, inner in enumerate(value):
                walk(inner, (*path, str(position)))

    walk(content, ())


@given(st.sampled_from(sorted(CONFIGS.glob("*.json"))), st.data())
def test_a_damaged_config_is_read_or_refused_but_never_crashes(
    tmp_path_factory: pytest.TempPathFactory, path: Path, data: st.DataObject
) -> None:
    config = json.loads(path.read_text())
    place = config.get("text_config", config) if data.draw(st.booleans()) else config
    for key in data.draw(st.lists(st.sampled_from(sorted(place)), max_size=3)):
        place[key] = data.draw(JSON)
    try:
        model = from_config(write(tmp_path_factory.mktemp("damaged"), config))
    except DatahallError:
        return
    assert len(model.layers) == model.num_layers
    assert count_parameters(model).total > 0
