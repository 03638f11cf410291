"""Verbs about power."""

from __future__ import annotations

from datahall.answers.verb import Verb
from datahall.answers.verbs.model import MODEL, MODEL_DETAILS
from datahall.scenario.takes import Takes

VERBS = (
    Verb(
        name="show power",
        about="what a site draws in training, how that swings, what evens it out, energy and carbon",
        answer="power.power:show_power",
        check="planner.training.early:check_laid_step",
        prepare="power.power:prepare",
        takes=(
            MODEL,
            Takes("training", without=("deadline", "memory_margin")),
            Takes("fabric", only=("chips", "chip", "wiring…")),
            Takes("layout"),
            Takes("site"),
        ),
        arguments=("model",),
        required=("model",),
        means=(
            ("chips", "Chips of the site (default: all of a fabric that was built)."),
            ("tokens", "Tokens to train on, for the energy of the whole run."),
        ),
        leads=(
            "least provisioned_w",
            "least site_w",
            "least swing_w",
            "least token_j",
            "least day_kg",
        ),
        examples=(
            "llama-3.1-405b --chips 100000",
            "llama-3.1-405b --chips 16384 --tp 8 --pp 16 --swing-limit 5MW -o power.html",
            "llama-3.1-70b --chips 20000 --chip gb200 --grid texas --battery 10",
        ),
        details=MODEL_DETAILS
        + " Exit code 1 where a limit that was said is broken, with what would keep it.",
    ),
)
