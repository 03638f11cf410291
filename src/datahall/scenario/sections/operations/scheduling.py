"""A queue of jobs on one cluster: the jobs, or the file that has them, and how the cluster serves them."""

from collections.abc import Iterator
from typing import Annotated

from datahall.catalog.entries.model import Model
from datahall.errors import ScenarioError, option
from datahall.scenario.field import Section
from datahall.scenario.idle import does_nothing
from datahall.scenario.kinds import Choice, Count, File, Flag, Listed, Quantity, Share, Text
from datahall.scenario.sections.deployment import MOST_CHIPS
from datahall.scenario.words import BY_USE, JOB_KINDS, QUEUE_POLICIES, JobKind, QueuePolicy
from datahall.units import DAY_S, HOUR_S

USUAL_DEPTH = 1000  # waiting jobs that are looked at
USUAL_PROMISES = 50  # and are promised a time, where everyone is
USUAL_HALF_LIFE_S = 7 * DAY_S  # as Slurm has it
USUAL_RESTART_S = 300.0
USUAL_REPAIR_S = 4 * HOUR_S
MOST_JOBS = 10_000_000
MOST_PRIORITY = 10**9


class ClusterJob(Section, frozen=True, kw_only=True):
    """A job of the queue: chips for some time."""

    name: Annotated[str, Text("Name of the job in the tables.")] = ""
    chips: Annotated[int, Count("Chips that it holds, all at once.", most=MOST_CHIPS)] = 8
    nodes: Annotated[
        int | None, Count("Nodes that its chips lie on (default: as few as can be).", most=MOST_CHIPS)
    ] = None
    run_s: Annotated[float, Quantity("How long it runs.", above=True, example="2h")] = 3600.0
    limit_s: Annotated[
        float | None,
        Quantity(
            "What it says that it runs at most; then it is stopped (default: as long as it runs).", above=True
        ),
    ] = None
    submit_s: Annotated[float, Quantity("When it is submitted.")] = 0.0
    priority: Annotated[int, Count("More is first.", least=0, most=MOST_PRIORITY)] = 0
    user: Annotated[str, Text("Whose it is, for fair share.")] = ""
    account: Annotated[str, Text("On whose account, in place of the user.")] = ""
    kind: Annotated[
        JobKind, Choice("training or serving; a service loses no work when it stops.", options=JOB_KINDS)
    ] = "training"
    preemptible: Annotated[bool, Flag("It may be stopped or moved for others.")] = False
    gang: Annotated[bool, Flag("It needs all of its nodes at once; else they start one by one.")] = True
    checkpoint_every_s: Annotated[
        float | None, Quantity("Work between two checkpoints (default: that of all jobs).", above=True)
    ] = None
    network_fraction: Annotated[
        float, Share("Share of its time that the network takes, where it lies as close as can be.")
    ] = 0.0
    count: Annotated[int, Count("How many such jobs.", most=MOST_JOBS)] = 1
    every_s: Annotated[float, Quantity("Time between their submissions.", needs=("count",))] = 0.0

    def problems(self, model: Model | None = None) -> Iterator[ScenarioError]:
        del model
        if self.nodes is not None and self.nodes > self.chips:
            yield ScenarioError(
                f"{self.chips} chips do not lie on {self.nodes} nodes",
                field="cluster_job",
                hint=f"nodes = {self.chips} at most",
            )


class Scheduler(Section, frozen=True, kw_only=True):
    """How a cluster serves its queue, and what its nodes go through."""

    queue: Annotated[
        str,
        File("Jobs of a sacct dump (--parsable2) or of a public cluster's CSV trace.", example="sacct.txt"),
    ] = ""
    policies: Annotated[
        tuple[QueuePolicy, ...],
        Listed(
            f"One or several side by side: {', '.join(QUEUE_POLICIES)}.",
            of=Choice("", options=QUEUE_POLICIES),
            name="policy",
            metavar="POLICY",
            example="gang,backfill,topology",
        ),
    ] = ("backfill",)
    first_jobs: Annotated[
        int | None,
        Count(
            "Only so many jobs of a dump or a trace, from its beginning.", most=MOST_JOBS, needs=("queue",)
        ),
    ] = None
    depth: Annotated[
        int | None,
        Count(
            f"Waiting jobs that are looked at (default: {USUAL_DEPTH}; {USUAL_PROMISES} where all are promised a time).",
            most=MOST_JOBS,
            rare=True,
        ),
    ] = None
    half_life_s: Annotated[
        float | None,
        Quantity(
            f"Time in which use counts half, for fair share (default: {USUAL_HALF_LIFE_S / DAY_S:g} days).",
            above=True,
            rare=True,
        ),
    ] = None
    checkpoint_every_s: Annotated[
        float | None,
        Quantity(
            "Work between two checkpoints of a job (default: none, all is lost).",
            above=True,
        ),
    ] = None
    restart_s: Annotated[
        float | None,
        Quantity(f"Time until a job that begins again does work (default: {USUAL_RESTART_S / 60:g} min)."),
    ] = None
    mttf_s: Annotated[
        float | None,
        Quantity("Mean time to failure of one node (default: none fails).", least=60.0, example="300d"),
    ] = None
    repair_s: Annotated[
        float,
        Quantity("Time until a node that failed is back.", needs=("mttf",), above=True),
    ] = USUAL_REPAIR_S

    def problems(self, model: Model | None = None) -> Iterator[ScenarioError]:
        del model
        if self.half_life_s is not None and not set(BY_USE) & set(self.policies):
            yield ScenarioError(
                does_nothing("half_life", "no policy counts use"),
                field="half_life",
                hint=f"leave it out, or {option('policy', BY_USE[0])}",
            )

    def usual(self) -> dict[str, object]:
        half_life = {"half_life_s": USUAL_HALF_LIFE_S} if set(BY_USE) & set(self.policies) else {}
        return {**half_life, "policies": self.policies}
