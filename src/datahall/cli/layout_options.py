"""Options of a training layout that several commands share, beside its degrees."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

OPTIONS = (
    click.option("--etp", metavar="N", help="Chips that share one expert (default: tp/ep, at least 1)."),
    click.option("--shard", metavar="N", help="Replicas that share a state, others hold copies: HSDP."),
    click.option(
        "--modules",
        metavar="LIST",
        help="Recompute only these: core_attn, layernorm, mla_up_proj, mlp, moe, moe_act, shared_experts.",
    ),
    click.option(
        "--context", metavar="HOW", help="Exchange of a split context: ring (default) or all-to-all."
    ),
    click.option("--split", metavar="LIST", help='Layers of each stage, e.g. "3 4 4 4" or "3,4x3".'),
    click.option(
        "--offload",
        metavar="LIST",
        help="optimizer, parameters, activations: to the host, or to drives as optimizer:nvme.",
    ),
    click.option("--compress", metavar="HOW", help="Gradients on the wire: bf16, fp8, 1-bit or power-sgd."),
)


def layout_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of a layout to a command."""
    for option in reversed(OPTIONS):
        function = option(function)
    return function
