"""Steps on one chip: the model that a row's figures give, its time and its memory."""

from __future__ import annotations

import msgspec
import pytest

from datahall.catalog import load
from datahall.training.layout.columns import Space
from datahall.training.memory.bookkeeping import BOOKS
from datahall.training.memory.peak import peak_memory
from datahall.validation.measurement import Row
from datahall.validation.training.single_chip import predict_rows, shaped, task

CELLS = {
    "model": "llama-3b", "params_B": "3.015355392", "layers": "28", "hidden": "3072", "seq": "2048",
    "micro_batch": "4", "recompute": "False", "compile": "False", "step_ms": "362.6", "peak_mem_GiB": "48.358",
}  # fmt: skip
GIB = 2.0**30


def test_the_width_of_the_mlp_is_what_the_parameters_leave() -> None:
    model = shaped(Row("x", CELLS))
    assert (model.ffn, model.num_heads, model.num_kv_heads) == (8192, 24, 8)


def test_a_row_gives_a_time_and_a_peak() -> None:
    step, memory = predict_rows([Row("x.csv:2", CELLS)])
    assert (step.metric, memory.metric) == ("step time", "peak memory")
    assert step.predicted == pytest.approx(0.36, rel=0.1)
    assert (step.unit, memory.unit) == ("s", "bytes")


def test_before_backward_no_gradient_takes_memory_and_after_it_all_do() -> None:
    """By hand: 2 + 4 bytes of each parameter and the logits four times in bf16; with recomputation all 8 bytes."""
    parameters = 3_015_355_392
    chip = load().chip("h200-sxm")
    job, layout = task(Row("x", CELLS))
    kept = peak_memory(job, chip, Space.of(layout), BOOKS["eager"])
    assert float(kept.gradient_bytes[0]) == 0
    assert float(kept.weight_bytes[0] + kept.optimizer_bytes[0]) == pytest.approx(6 * parameters, rel=1e-3)
    logits, norm = 4 * 2 * 32000 * 8192, 8 * 3072 * 8192
    assert float(kept.working_bytes[0]) == pytest.approx(logits + norm, rel=1e-3)
    again = peak_memory(
        job, chip, Space.of(msgspec.structs.replace(layout, recompute="full")), BOOKS["eager"]
    )
    assert float(again.gradient_bytes[0]) == pytest.approx(2 * parameters, rel=1e-3)
    assert float(again.activation_bytes[0]) == 2 * 3072 * 8192


def test_a_compiled_run_is_faster_and_keeps_less() -> None:
    plain, compiled = (
        [one.predicted for one in predict_rows([Row("x.csv:2", CELLS | {"compile": word})])]
        for word in ("False", "True")
    )
    assert compiled[0] < 0.85 * plain[0]
    assert compiled[1] < 0.85 * plain[1]
