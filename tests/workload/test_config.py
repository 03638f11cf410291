"""A model from a file that gives it no name is called by its family and size."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from datahall.workload.config import read_config
from datahall.workload.parameters import count_parameters

LLAMA = {
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 4096, "intermediate_size": 14336,
    "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 128256,
    "max_position_embeddings": 131072, "torch_dtype": "bfloat16", "tie_word_embeddings": False,
}  # fmt: skip


@pytest.mark.parametrize("folder", ["deepseek-v3", "my model"])
def test_the_name_is_that_of_the_file_and_not_of_its_folder(tmp_path: Path, folder: str) -> None:
    path = tmp_path / folder / "config.json"
    path.parent.mkdir()
    path.write_text(json.dumps(LLAMA))
    model = read_config(path)
    assert (model.name, model.title) == ("llama 8.03B", "llama 8.03B")
    assert count_parameters(model).total == pytest.approx(8.03e9, rel=1e-3)


def test_a_name_in_the_file_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text(json.dumps(LLAMA | {"_name_or_path": "meta-llama/Llama-3.1-8B"}))
    assert read_config(path).name != "llama 8.03B"
