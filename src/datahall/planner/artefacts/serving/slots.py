"""Where replicas stand: several on one node, one on each, or one over several."""

from __future__ import annotations

from collections.abc import Sequence

from datahall.planner.artefacts.script import Variable
from datahall.planner.artefacts.serving.service import Service

NODE_RANK = Variable("NODE_RANK", "${SLURM_NODEID:-0}", "of this node, from 0")
ADDRESS = Variable("MASTER_ADDR", about="address of the first node of this replica")
ADAPTERS = Variable("ADAPTERS", about="adapters to serve: name=path name=path")
PORT = Variable("PORT", "8000", "of the first replica on this node")


def in_slots(service: Service, replica: Sequence[str]) -> list[str]:
    """The replicas of one node beside each other, until one of them ends."""
    return [
        f"REPLICAS={service.best.num_deployed}",
        f"NODES={service.num_nodes}",
        f"BESIDE={service.num_beside}  # replicas on a node",
        f"CHIPS={service.replica.num_chips}  # of one replica",
        "",
        "trap 'kill $(jobs -p) 2>/dev/null || true' EXIT",
        "for ((slot = 0; slot < BESIDE; slot++)); do",
        "  if ((NODE_RANK * BESIDE + slot >= REPLICAS)); then break; fi",
        "  first=$((slot * CHIPS))",
        *replica,
        "done",
        "wait -n",
    ]


def over_nodes(service: Service, replica: Sequence[str]) -> list[str]:
    """One replica on this node, or its part of one that takes several."""
    lines = [
        f"REPLICAS={service.best.num_deployed}",
        f"NODES={service.num_nodes}",
        f"CHIPS={service.replica.num_chips}  # of one replica",
    ]
    if service.num_replica_nodes > 1:
        lines += ["", f"rank=$((NODE_RANK % {service.num_replica_nodes}))  # of this node in its replica"]
    return [*lines, "", *replica]
