"""Verbs about the way of data: from storage to the chips."""

from __future__ import annotations

from datahall.answers.verb import Verb
from datahall.scenario.takes import Takes
from datahall.scenario.usual import USUAL_CHIP

VERBS = (
    Verb(
        name="show datapath",
        about="does storage starve the chips: utilisation, what binds, and what mends it",
        answer="datapath.datapath:show_datapath",
        takes=(Takes("datapath"), Takes("fabric", only=("chips", "chip"))),
        arguments=("workload",),
        required=("workload", "chips"),
        means=(("chips", "How many chips read."), ("chip", f"Chip (default: {USUAL_CHIP}).")),
        leads=(
            "most utilisation_fraction",
            "most margin_ratio",
            "least stall_fraction",
        ),
        examples=(
            "resnet50 --chips 64 --storage nvme,object",
            "unet3d --chips 36 --storage lustre --readers 16",
            "llama-3.1-405b --chips 16384 --storage parallel,tectonic --units 4",
        ),
        details="Exit code 1 where no storage keeps chips at work as much as is asked for, with the cheapest change.",
    ),
)
