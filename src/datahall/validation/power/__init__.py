"""Measured power of chips, servers and nodes under load: what the power room is judged on.

Two formats: points of chips and servers (the ML.ENERGY benchmark, wall readings of MLPerf Inference, phases on one
H200), told apart by the scope they state, and nodes of MLPerf Training runs.
"""

from __future__ import annotations

from datahall.validation.measurement import Format
from datahall.validation.power.nodes import predict_nodes
from datahall.validation.power.points import predict_points

FORMATS = (
    Format(
        "power of chips and servers",
        frozenset({"scope", "system", "accelerator", "n_accelerators", "workload", "power_w_total"}),
        predict_points,
    ),
    Format(
        "power of training nodes",
        frozenset({"benchmark", "system", "n_nodes", "gpus_per_node", "duration_s", "mean_node_W"}),
        predict_nodes,
    ),
)

__all__ = ["FORMATS"]
