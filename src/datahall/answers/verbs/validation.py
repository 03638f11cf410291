"""Verbs that say how far we are off, and what is wrong with a file."""

from __future__ import annotations

from datahall.answers.verb import Verb
from datahall.scenario.takes import Takes
from datahall.scenario.words import DOMAINS

VERBS = (
    Verb(
        name="validate",
        about="our error against public measurements",
        answer="validation.scorecard:validate",
        check="answers.validation.early:check_files",
        takes=(Takes("files", only=("domain", "data")),),
        arguments=("domain",),
        required=("domain",),
        by_file=False,
        examples=("kernels", "inference", "kernels --data my-gemm.csv --format md"),
        details=f"DOMAIN is {', '.join(DOMAINS)}. Measured rows are predicted again.",
    ),
    Verb(
        name="check",
        about="every problem of a scenario, a catalogue file or a config.json, each with file:line",
        answer="validation.check:check",
        takes=(Takes("files", only=("files",)),),
        arguments=("files",),
        required=("files",),
        by_file=False,
        several=True,
        examples=("my-chip.toml scenario.toml path/to/config.json",),
        details="Exit code 1 where there are any.",
    ),
)
