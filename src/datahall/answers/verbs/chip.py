"""Verbs about one chip: its values, and the levels of its memory."""

from __future__ import annotations

from datahall.answers.verb import Verb
from datahall.scenario.takes import Takes

VERBS = (
    Verb(
        name="show chip",
        about="every value of a chip with unit, source, date and kind",
        answer="chip.chip:show_chip",
        takes=(Takes("claim"),),
        arguments=("chip",),
        required=("chip",),
        leads=(
            "most memory_bytes",
            "most memory_bytes_per_s",
            "most peak_bf16_flop_per_s",
            "most peak_fp8_flop_per_s",
            "most scale_up_bytes_per_s",
            "least power_limit_w",
            "least price_usd",
        ),
        examples=("h100-sxm", 'h100-sxm --claim "peak.fp8=3958 TFLOP/s"'),
    ),
    Verb(
        name="show hierarchy",
        about="memory levels, and what outgrowing each of them costs",
        answer="chip.hierarchy:show_hierarchy",
        takes=(Takes("deployment", only=("chip",)), Takes("working_set")),
        arguments=("chip",),
        required=("chip",),
        examples=("h100-sxm", 'h100-sxm --working-set "140 GB" --offload host --prefetch'),
    ),
)
