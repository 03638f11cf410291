"""In what formats a job can be trained, and which state goes with them; what does not is refused with its place."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.training.test_setup import SHELF, setup

import datahall as dh
from datahall.catalog.number_formats import bytes_per_value
from datahall.errors import DatahallError, ScenarioError, spelled
from datahall.workload.memory.recipe import RECIPES
from datahall.workload.precision import PRESETS, TRAINED

SERVED = ("fp8-kv8", "int8", "w8a16", "w4a16", "w4a8", "mxfp4")
ASKED = {
    "plan train": lambda **more: dh.plan_train("qwen3-0.6b", chips=8, tokens="1B", chip="b200", **more),
    "simulate train": lambda **more: dh.simulate_train("qwen3-0.6b", chips=8, chip="b200", **more),
    "show memory": lambda **more: dh.show_memory("qwen3-0.6b", chip="b200", **more),
}


def test_every_format_is_one_to_train_in_or_one_to_serve_in() -> None:
    assert {*TRAINED, *SERVED} == set(PRESETS)
    assert not set(TRAINED) & set(SERVED)


@pytest.mark.parametrize("precision", SERVED)
@pytest.mark.parametrize("verb", ASKED)
def test_a_format_to_serve_in_is_refused(verb: str, precision: str) -> None:
    with pytest.raises(DatahallError) as refused:
        ASKED[verb](precision=precision)
    assert refused.value.field == "precision"
    assert precision in spelled(refused.value.message)
    assert all(name in str(refused.value.hint) for name in TRAINED)
    assert not any(name in str(refused.value.hint) for name in SERVED)


@pytest.mark.parametrize("precision", TRAINED)
@pytest.mark.parametrize("state", RECIPES)
def test_weights_are_kept_in_no_fewer_bits_than_they_are_multiplied_with(state: str, precision: str) -> None:
    if RECIPES[state].weight >= bytes_per_value(PRESETS[precision].compute):
        assert setup(chips=8, chip="b200", precision=precision, state=state).used["state"] == state
        return
    with pytest.raises(ScenarioError) as refused:
        setup(chips=8, chip="b200", precision=precision, state=state)
    assert refused.value.field == "state"
    named = [name for name in RECIPES if name in str(refused.value.hint).replace(",", "").split()]
    assert named
    assert state not in named
    for other in named:  # what is proposed runs
        setup(chips=8, chip="b200", precision=precision, state=other)


def test_fp32_goes_with_its_own_state_alone() -> None:
    for precision in ("fp32", "tf32"):
        with pytest.raises(ScenarioError, match=r"states for it: fp32$"):
            setup(chips=8, precision=precision, state="megatron")


@pytest.mark.parametrize("verb", ASKED)
def test_every_verb_refuses_a_state_that_is_too_narrow(verb: str) -> None:
    with pytest.raises(ScenarioError) as refused:
        ASKED[verb](precision="fp32", state="pure-bf16")
    assert refused.value.field == "state"


def test_the_format_of_a_layout_file_counts(tmp_path: Path) -> None:
    file = tmp_path / "ds.json"
    file.write_text('{"train_micro_batch_size_per_gpu": 1}')  # DeepSpeed without a word of a format: fp32
    with pytest.raises(ScenarioError, match="multiplies those of 32"):
        setup(chips=8, layout=str(file), state="megatron")
    assert setup(chips=8, layout=str(file), state="megatron", precision="bf16").used["state"] == "megatron"


def test_a_plan_that_does_not_fit_in_fp32_proposes_no_state_that_is_refused() -> None:
    with pytest.raises(DatahallError) as refused:
        dh.plan_train("llama-3.1-405b", chips=8, tokens="1B", precision="fp32", catalog=SHELF)
    hint = spelled(str(refused.value.hint))
    assert "pure-bf16" not in hint
    assert 'precision="bf16"' in hint or "precision=bf16" in hint
