"""Verbs about a run over weeks: its checkpoints, and what failures leave of it."""

from __future__ import annotations

from datahall.answers.verb import Verb
from datahall.answers.verbs.model import MODEL
from datahall.scenario.takes import Takes

JOB = ("seq", "global_batch", "precision", "framework", "state", "imbalance", "memory_margin", "adapters…")
MARGIN = ("memory_margin", "Share of a chip's memory that the layout leaves free, where it is looked for.")
CHIPS = ("chips", "How many chips the job runs on (default: all of a fabric that was built).")

VERBS = (
    Verb(
        name="show checkpoint",
        about="what a checkpoint holds, what each tier takes to write and read it, and how often to write",
        answer="run.checkpoint:show_checkpoint",
        check="reliability.early:check_checkpoint",
        takes=(
            MODEL,
            Takes("training", only=JOB),
            Takes("fabric", only=("chips", "chip", "wiring…")),
            Takes("layout"),
            Takes("failures", without=("spares_enough", "node_age")),
            Takes("checkpoint"),
            Takes(
                "recovery",
                only=("restart…", "spares", "hot_spares", "elastic", "preempted_every"),
                needs=(("spares", ("hot_spares",)),),
            ),
        ),
        arguments=("model",),
        required=("model",),
        means=(
            CHIPS,
            MARGIN,
            ("tier", "Where copies are kept: {words} (default: the best of them)."),
        ),
        leads=(
            "most checkpoint_ettr_fraction",
            "least checkpoint_bytes_per_s",
            "least restart_s",
        ),
        examples=(
            "llama-3.1-405b --chips 16384 --storage 2TB/s",
            "llama-3.1-405b --chips 16384 --storage 1GB/s --tier remote",
        ),
        details="Exit code 1 where the storage is slower than the checkpoints need, with what would be enough.",
    ),
    Verb(
        name="simulate run",
        about="a training run over weeks, failure by failure: interruptions, effective time, lost hours, spares",
        answer="run.simulation:simulate_run",
        check="reliability.early:check_weeks",
        prepare="run.simulation:prepare",
        takes=(
            Takes(""),
            Takes("training", only=(*JOB, "tokens", "deadline")),
            Takes("fabric", only=("chips", "chip", "wiring…")),
            Takes("layout"),
            Takes("failures"),
            Takes("checkpoint"),
            Takes("recovery"),
            Takes("run"),
            Takes("stragglers"),
        ),
        arguments=("model",),
        required=("model",),
        means=(
            CHIPS,
            MARGIN,
            ("deadline", "When the tokens must have been trained on, in nine of ten runs."),
        ),
        leads=(
            "most ettr_fraction",
            "least elapsed_s",
            "least num_interruptions",
            "least num_spares",
        ),
        examples=(
            "llama-3.1-405b --chips 16384 --days 54",
            "llama-3.1-405b --chips 16384 --tokens 15T --tier peer,remote --spares 20",
            "llama-3.1-405b --chips 16384 --days 54 --blocking 60s --ettr 90%",
        ),
        details="Exit code 1 where a promised end or effective time is not kept, with what would keep it.",
    ),
)
