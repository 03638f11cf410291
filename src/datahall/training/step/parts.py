"""What a person calls the parts of a step, as the closed form and as the simulation take it apart."""

from __future__ import annotations

PARTS = {
    "kernels": "kernels",
    "redone": "of which recomputed",
    "exchange": "tensor, context and expert exchange",
    "uneven": "of both waiting for the busiest experts",
    "tensor": "tensor and context exchange",
    "expert": "expert exchange",
    "gather": "gathering sharded weights",
    "beside": "what runs beside the kernels",
    "messages": "messages between stages",
    "bubble": "bubble",
    "data": "gradients and parameters",
    "optimizer": "optimizer",
    "offload": "traffic to the host",
    "fixed": "once a step",
    "slowest": "waiting for the slowest rank",
}
