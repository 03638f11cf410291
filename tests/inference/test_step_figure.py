"""The figure of a step: it is the step of the table, and says of each part what it is made of."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import numpy as np
import pytest

from datahall.breakdown import false_nodes
from datahall.catalog import load
from datahall.inference.engine.replica import Adapters, Replica, Speculation
from datahall.inference.step.exchange import exchange
from datahall.inference.step.figure import step_breakdown, step_figure
from datahall.inference.step.kernels import Passes
from datahall.inference.step.price import (
    price_steps,
)
from datahall.inference.step.table import decode_step_time, decode_time, head_time, prefill_time, tokens_time

Serve = Callable[..., Replica]
replace = msgspec.structs.replace


@pytest.mark.parametrize(
    ("model", "options"),
    [
        ("llama-3.1-8b", {}),
        ("llama-3.1-70b", {"tp": 4, "pp": 2}),
        ("qwen3-30b-a3b", {"dp": 2, "ep": 2}),
        (
            "llama-3.1-8b",
            {
                "speculation": Speculation(
                    num_draft=2, draft="llama-3.2-1b", model=load().model("llama-3.2-1b")
                )
            },
        ),
        ("llama-3.1-8b", {"adapters": Adapters(num=20, zipf_factor=0.0)}),
    ],
)
def test_the_figure_is_the_step_of_the_table(serve: Serve, model: str, options: dict[str, object]) -> None:
    """Its parts add up, a pipeline's round is told whole, and host time is for every sequence of the step."""
    one = serve(model, **options)
    one = replace(one, engine=replace(one.engine, host_step_s=1e-3, host_sequence_s=1e-5))
    table = price_steps(one).table
    figure = step_breakdown(one, num_decodes=32, mean_context=1000)
    assert figure.value == pytest.approx(sum(part.value for part in figure.parts))
    assert figure.value == pytest.approx(decode_step_time(table, 32, 1000.0), rel=0.02)
    (host,) = [part for part in figure.parts if part.name == "host"]
    assert host.value == pytest.approx(1e-3 + 32e-5)
    chunked = step_breakdown(one, num_decodes=32, mean_context=1000, chunks=[(512, 256), (100, 0)])
    (host,) = [part for part in chunked.parts if part.name == "host"]
    assert host.value == pytest.approx(1e-3 + 34e-5)
    verified = table.num_verified
    whole = (
        tokens_time(table, 32 * verified + 612) + decode_time(table, 32, 1000.0) + prefill_time(table, 512.0, 256.0)
        + prefill_time(table, 100.0, 0.0) + head_time(table, 34) + 1e-3 + 34e-5
    )  # fmt: skip
    assert chunked.value == pytest.approx(whole, rel=0.03)
    assert "612 prompt tokens" in chunked.name
    low, high = Passes.of(one).calibration.constants.bands["pass"]
    assert chunked.band is not None
    assert low * chunked.value <= chunked.band.low < chunked.value
    assert chunked.band.high == pytest.approx(high * chunked.value)


STEPS = [
    ("llama-3.1-8b", "l4", {}),
    ("llama-3.1-8b", "rtx-pro-6000", {"tp": 2}),
    ("llama-3.1-8b", "rtx-4090", {"tp": 4, "peer_to_peer": False}),
    ("llama-3.1-70b", "h200-sxm", {"tp": 4, "pp": 2}),
    ("llama-3.1-70b", "h200-sxm", {"tp": 16}),
    ("llama-3.1-70b", "mi300x", {"tp": 8}),
    ("qwen3-next-80b-a3b", "h100-sxm", {"tp": 4}),
    ("deepseek-v3", "h200-sxm", {"tp": 2, "dp": 4, "ep": 8, "precision": "fp8"}),
    ("deepseek-v3", "h200-sxm", {"dp": 16, "ep": 16, "precision": "fp8"}),
]


@pytest.mark.parametrize(("model", "chip", "options"), STEPS)
def test_what_was_computed_is_not_called_fitted(
    serve: Serve, model: str, chip: str, options: dict[str, object]
) -> None:
    """A step's parts are opened down to leaves; those that were fitted say on what, and where that is from."""
    one = serve(model, chip, **options)
    figure = step_breakdown(one, num_decodes=32, mean_context=1000, chunks=[(512, 256)])
    assert not false_nodes(figure)
    assert not [node.name for _, node in figure.walk() if node.origin == "fitted" and not node.sources]
    opened = {node.name: node.parts for _, node in figure.walk()}
    assert all(opened[name] for name in ("decodes", "chunk of a prompt", "head"))
    sent = exchange(one, np.array([(32 + 512) / one.pp]))
    parts = {node.name: node.value for _, node in figure.walk()}
    assert parts.get("between the chips that share a layer", 0.0) == pytest.approx(float(sent.tensor_s[0]))
    assert parts.get("between attention and experts", 0.0) == pytest.approx(float(sent.expert_s[0]))
    assert parts.get("between stages", 0.0) == pytest.approx(one.pp * float(sent.stage_s[0]))


@pytest.mark.parametrize(("model", "chip", "options"), STEPS)
def test_a_step_is_expected_to_take_no_less_than_its_roofline(
    serve: Serve, model: str, chip: str, options: dict[str, object]
) -> None:
    one = serve(model, chip, **options)
    figure, passes = step_breakdown(one, num_decodes=1, mean_context=1000), Passes.of(one)
    row, context = np.array([1.0]), np.array([1000.0])
    kernels = [
        *passes.token_kernels(row),
        *passes.decode_kernels(row, context, verified=1),
        *passes.head_kernels(row),
    ]
    least_s = sum(float(np.ravel(kernel.operator.count * kernel.roofline_s)[0]) for kernel in kernels)
    assert figure.band is not None
    assert least_s <= figure.band.low * (1 + 1e-9) <= figure.value


@pytest.mark.parametrize(("model", "chip", "options"), STEPS)
def test_every_part_of_a_step_is_bound_by_one_resource(
    serve: Serve, model: str, chip: str, options: dict[str, object]
) -> None:
    step = step_figure(serve(model, chip, **options), num_decodes=32, mean_context=1000, chunks=[(512, 256)])
    assert sum(step.taken_s.values()) == pytest.approx(step.figure.value)
    parts = {part.name: part.value for part in step.figure.parts}
    assert step.taken_s["host"] == pytest.approx(parts["host"])
    assert step.taken_s.get("interconnect", 0.0) == pytest.approx(parts.get("exchange", 0.0))


def test_the_figure_names_what_is_sent(serve: Serve) -> None:
    figure = step_breakdown(serve("llama-3.1-70b", tp=4, pp=2), num_decodes=32, mean_context=1000)
    (sent,) = [part for part in figure.parts if part.name == "exchange"]
    found = exchange(serve("llama-3.1-70b", tp=4, pp=2), np.array([16.0]))
    named = {part.name: part.value for part in sent.parts}
    assert named["between the chips that share a layer"] == pytest.approx(float(found.tensor_s[0]))
    assert named["between stages"] == pytest.approx(2 * float(found.stage_s[0]))
    assert "between attention and experts" not in named
    alone = step_breakdown(serve("llama-3.1-8b"), num_decodes=1, mean_context=10)
    assert "exchange" not in {part.name for part in alone.parts}
    idle = step_breakdown(serve("llama-3.1-8b"), chunks=[(100, 0)])
    (attention,) = [part for part in idle.parts if part.name == "attention"]
    assert [part.name for part in attention.parts] == ["chunk of a prompt"]
