"""Verbs about money."""

from __future__ import annotations

from datahall.answers.verb import Verb
from datahall.answers.verbs.model import MODEL_DETAILS
from datahall.scenario.takes import OWNED, PRICED, SUPPLIED, Takes
from datahall.scenario.usual import BATCH_WHERE_UNSAID, OWNED_CHIPS, USUAL_MODEL

STANDS = Takes("site", only=("facility", "pue", "storage_share", "grid"))
SERVED = (
    Takes("", only=("model", "seed")),
    PRICED,
    SUPPLIED,
    OWNED,
    STANDS,
    Takes("overheads"),
    Takes("api"),
    Takes("traffic", only=("lengths…",)),
    Takes("promise", only=("tpot", "percentile")),
    Takes("candidates", without=("available", "spare", "disaggregated")),
    Takes("deployment", only=("tp", "engine")),
    Takes("recovery", only=("preempted_every", "restart")),
)

VERBS = (
    Verb(
        name="show cost",
        about="what a chip-hour costs by every way to have it, or a training run by three accountings, in four scopes",
        answer="economics.cost:show_cost",
        check="economics.early:check_cost",
        prepare="economics.cost:prepare",
        takes=(
            Takes("purchase", only=("priced", "own", "predict", "chip_hours", "prices…")),
            OWNED,
            STANDS,
            Takes("training", only=("tokens", "seq", "global_batch", "precision")),
            Takes("fabric", only=("chips", "chip")),
            Takes("recovery", only=("preempted_every", "restart")),
            Takes("checkpoint", only=("blocking",)),
        ),
        arguments=("priced",),
        required=("priced",),
        means=(
            (
                "chips",
                f"Chips of the run, or of a cluster that is owned (default: as published, or {OWNED_CHIPS}).",
            ),
            ("tokens", "Tokens to train on (default: as published)."),
            ("chip", "Chip that the run is on (default: as published)."),
            ("seq", "Tokens of a sequence (default: as published, else the usual)."),
            ("global_batch", f"Sequences of a step (default: as published, else {BATCH_WHERE_UNSAID})."),
            ("precision", "Number format of the run (default: as published, else the usual)."),
        ),
        examples=(
            "llama-3.1-405b",
            "h100-sxm",
            "h100-sxm --own --owner hyperscaler --life 5y",
            "llama-3.1-8b --tokens 1T --chips 256",
            "deepseek-v3 --own",
            "gpt-4 --predict",
        ),
        details="Exit code 1 where nobody prices it, and where owning is asked for and nobody sells it.",
    ),
    Verb(
        name="show build-or-buy",
        about="tokens by an API or chips of one's own: the decision, its margin, and from which volume on it flips",
        answer="economics.choice:show_build_or_buy",
        check="planner.buying.early:check_choice",
        prepare="economics.choice:prepare",
        takes=(
            *SERVED,
            Takes("business", only=("tokens_per_month", "latency", "peak_to_mean")),
        ),
        required=("model", "tokens_per_month"),
        examples=(
            "--tokens-per-month 2B --model llama-3.1-70b --latency 200ms",
            "--tokens-per-month 20B --model llama-3.1-8b --api gpt-4o --buy rent",
        ),
        details=f"Exit code 1 where neither can be had within the latency. {MODEL_DETAILS}",
    ),
    Verb(
        name="show stage",
        about="a firm that grows: what a customer costs, what is left, on what to run, and what flips next",
        answer="economics.stage:show_stage",
        check="planner.buying.early:check_stage",
        prepare="economics.choice:prepare",
        takes=(
            *SERVED,
            Takes(
                "business", only=("customers", "tokens_per_customer", "revenue", "latency", "peak_to_mean")
            ),
        ),
        required=("customers", "tokens_per_customer"),
        means=(("model", f"Model that customers use (default: {USUAL_MODEL})."),),
        examples=(
            "--customers 1500 --tokens-per-customer 3M",
            "--customers 20000 --tokens-per-customer 3M --revenue 30USD",
        ),
        details=f"Exit code 1 where customers pay less than they cost. {MODEL_DETAILS}",
    ),
)
