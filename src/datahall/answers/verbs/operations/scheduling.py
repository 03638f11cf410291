"""Verbs about a cluster that many share: its queue."""

from __future__ import annotations

from datahall.answers.verb import Verb
from datahall.scenario.takes import Takes
from datahall.scenario.words import QUEUE_POLICIES

VERBS = (
    Verb(
        name="simulate cluster",
        about="a queue of jobs on one cluster under one policy or several side by side",
        answer="scheduling.cluster:simulate_cluster",
        prepare="scheduling.cluster:prepare",
        takes=(
            Takes("", only=("name", "seed"), needs=(("seed", ("mttf",)),)),
            Takes("scheduler"),
            Takes("fabric", only=("on", "chips", "chip", "domain", "oversubscription")),
            Takes("cluster_job"),
            Takes("failure", only=("chips", "domains", "switches", "start", "duration")),
        ),
        arguments=("queue",),
        traced=True,
        means=(
            ("on", "Topology, or a fabric that was built (default: full bisection)."),
            ("chips", "How many chips (default: the most that a trace with starts held at once)."),
            ("domain", "Chips of a node, or of a scale-up domain of several (default: as the chip is sold)."),
        ),
        leads=(
            "least mean_wait_s",
            "most utilisation_fraction",
            "least makespan_s",
            "least slowdown_ratio",
        ),
        examples=(
            "jobs.toml --policy gang,backfill,topology",
            "sacct.txt --policy fifo,backfill --chips 2048",
            '--chips 64 --cluster-job "chips=48,run=2h,count=3" --policy fifo',
            "sacct.txt --chips 2048 --mttf 300d --checkpoint-every 1h",
        ),
        details=(
            f"POLICY is one or several of {', '.join(QUEUE_POLICIES)}. FILE is a scenario with [[cluster_job]] tables, "
            "a sacct --parsable2 dump, or a trace of Acme, Helios, Alibaba (2020, 2023, 2026)."
        ),
    ),
)
