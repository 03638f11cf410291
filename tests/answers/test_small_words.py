"""Small words: one needs and many need, nothing is nothing, a name is said, and paths are text."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import datahall as dh
from datahall.errors import ScenarioError


@pytest.mark.parametrize(("users", "verb"), [(1, "needs"), (2, "need")])
def test_one_user_needs_and_two_need(users: int, verb: str) -> None:
    answer = dh.plan_serve("llama-3.1-8b", users=users, chips="h200", precision="fp8", tp=1, headroom=1e-9)
    assert f"Llama 3.1 8B {verb} 1 × h200-sxm" in answer.headline
    assert "at that load" in answer.headline
    assert "0 % more load" not in answer.headline


def test_a_percentile_is_one_that_a_run_can_show() -> None:
    with pytest.raises(ScenarioError, match="out of bounds"):
        dh.plan_serve("llama-3.1-8b", rate=1, percentile=1e-9)


def test_a_run_is_called_by_its_name() -> None:
    named = dh.simulate_train("llama-3.1-8b", chips=8, tp=8, name="nightly").headline
    assert named == f"nightly: {dh.simulate_train('llama-3.1-8b', chips=8, tp=8).headline}"


@pytest.mark.parametrize("split", ["", " ", [], "²", "4x²"])
@pytest.mark.parametrize("verb", ["simulate_train", "show_memory"])
def test_layers_of_no_stage_are_no_split(verb: str, split: object) -> None:
    with pytest.raises(ScenarioError, match="split"):
        getattr(dh, verb)("llama-3.1-8b", chips=8, split=split)


@pytest.mark.parametrize("name", ["etp", "shard"])
def test_a_group_of_none_is_not_the_default(name: str) -> None:
    with pytest.raises(ScenarioError, match="at least 1"):
        dh.simulate_train("qwen3-30b-a3b", chips=8, **{name: 0})


def test_a_path_may_be_one_of_pathlib(tmp_path: Path) -> None:
    config = {
        "model_type": "llama", "hidden_size": 512, "num_hidden_layers": 4, "num_attention_heads": 8,
        "num_key_value_heads": 8, "intermediate_size": 1024, "vocab_size": 1000, "max_position_embeddings": 2048,
    }  # fmt: skip
    file = tmp_path / "config.json"
    file.write_text(json.dumps(config), encoding="utf-8")
    assert dh.show_model(file).headline == dh.show_model(str(file)).headline
