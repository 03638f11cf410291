"""Verbs about failures: what each part takes down."""

from __future__ import annotations

from datahall.answers.verb import Verb
from datahall.answers.verbs.fabric import ON
from datahall.scenario.takes import Takes
from datahall.scenario.words import TOPOLOGIES

LAID = (
    "on",
    "chips",
    "chip",
    "switch",
    "server",
    "radix",
    "tiers",
    "oversubscription",
    "sides",
    "domain",
    "nic",
)

VERBS = (
    Verb(
        name="show blast-radius",
        about="what one failed GPU, NIC, cable, switch, rack, cube or pump takes down, how often, for how long; spares",
        answer="reliability.blast_radius:show_blast_radius",
        check="fabric.design.early:check_laid",
        takes=(Takes("fabric", only=LAID), Takes("failures", without=("node_age",))),
        required=("on",),
        means=(
            ON,
            (
                "chips",
                "How many chips it joins, rounded up to whole racks; a fabric that was built has its own.",
            ),
        ),
        leads=(
            "least lost_fraction",
            "most mttf_s",
            "least num_spares",
        ),
        examples=(
            "--on nvl72 --chips 10000",
            "--on rail-optimised --chips 16384 --failures-like rsc-1",
            "--on tpu-v4-pod",
        ),
        details=f"TOPOLOGY is {', '.join(TOPOLOGIES)}, or a fabric that was built: meta-24k-roce, tpu-v4-pod, ….",
    ),
)
