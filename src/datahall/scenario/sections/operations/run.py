"""A training run over weeks: how it comes back from a failure, and how long it is."""

from collections.abc import Iterator
from typing import Annotated

from datahall.catalog.entries.model import Model
from datahall.errors import ScenarioError, option
from datahall.scenario.field import Section
from datahall.scenario.idle import does_nothing
from datahall.scenario.kinds import Choice, Count, Flag, Quantity, Share
from datahall.scenario.words import BATCH_RULES, DETECTORS, BatchRule, Detector
from datahall.units import fmt

RESTART = "restart"  # a group of inputs: how long one takes, said whole or by its parts
MOST_RUNS = 1_000_000
LONGEST_DAYS = 3650


class Recovering(Section, frozen=True, kw_only=True):
    """How a run comes back from a failure, who stands by, and what else stops it."""

    detect_s: Annotated[
        float, Quantity("Until a failure is noticed.", against=("restart",), group=RESTART)
    ] = 180.0
    reschedule_s: Annotated[
        float, Quantity("Until the job stands on healthy nodes again.", against=("restart",), group=RESTART)
    ] = 120.0
    warmup_s: Annotated[
        float,
        Quantity(
            "From a loaded checkpoint to the first new step.",
            name="warm_up",
            against=("restart",),
            group=RESTART,
        ),
    ] = 300.0
    restart_s: Annotated[
        float | None,
        Quantity("A whole restart, loading included, instead of its parts.", example="10min", group=RESTART),
    ] = None
    spares: Annotated[
        int | None, Count("Spare nodes (default: as many as are needed).", least=0, most=1 << 20)
    ] = None
    hot_spares: Annotated[
        bool,
        Flag("Spares run already: nothing is rescheduled while one is free.", against=("restart",)),
    ] = False
    planned_every_s: Annotated[
        float | None,
        Quantity("Between planned stops (default: as those whose rates are used; 0: none).", example="7d"),
    ] = None
    planned_s: Annotated[
        float | None,
        Quantity("How long each planned stop takes (default: a restart without noticing it).", rare=True),
    ] = None
    elastic: Annotated[
        BatchRule | None,
        Choice(
            f"Replicas go on without one that fails; their batch and learning rate: {', '.join(BATCH_RULES)}.",
            options=BATCH_RULES,
            metavar="RULE",
        ),
    ] = None
    stall_s: Annotated[float, Quantity("Until the other replicas go on.", needs=("elastic",), rare=True)] = (
        5.0
    )
    sdc: Annotated[
        Detector | None,
        Choice(
            f"How silent corruption is noticed: {', '.join(DETECTORS)} (default: at once, as other failures).",
            options=DETECTORS,
            metavar="HOW",
            rare=True,
        ),
    ] = None
    sdc_every: Annotated[
        int, Count("Steps between two that are replayed.", needs=("sdc=replay",), rare=True)
    ] = 100
    preempted_every_s: Annotated[
        float | None,
        Quantity(
            "Mean time until a node of spot capacity is taken away.",
            above=True,
            example="6h",
            name="preempted_every",
        ),
    ] = None
    back_s: Annotated[
        float,
        Quantity(
            "Mean wait for capacity that was taken away.", needs=("preempted_every",), name="capacity_back"
        ),
    ] = 1800.0
    notice_s: Annotated[float, Quantity("Warning before it is.", needs=("preempted_every",), rare=True)] = 0.0

    def problems(self, model: Model | None = None) -> Iterator[ScenarioError]:
        del model
        if self.hot_spares and self.spares == 0:
            yield ScenarioError(
                does_nothing("hot_spares", "there are no spares"),
                field="hot_spares",
                hint=f"leave {option('hot_spares')} out, or {option('spares', 1)} or more",
            )


class RunLength(Section, frozen=True, kw_only=True):
    """How long a run is, what is promised of it, and how often it is simulated."""

    num_days: Annotated[
        float | None,
        Quantity(
            "Length of the run in days.",
            name="days",
            unit="count",
            above=True,
            most=LONGEST_DAYS,
            example="54",
        ),
    ] = None
    ettr_fraction: Annotated[
        float | None,
        Share(
            "Share of the time that must move the run forward (ETTR), in nine of ten runs.",
            above=True,
            name="ettr",
        ),
    ] = None
    runs: Annotated[int, Count("Runs to simulate.", most=MOST_RUNS)] = 1000

    def problems(self, model: Model | None = None) -> Iterator[ScenarioError]:
        del model
        if self.ettr_fraction == 1.0:
            yield ScenarioError(
                f"{option('ettr', fmt(1.0, 'fraction'))} leaves no time for a checkpoint",
                field="ettr",
                hint=option("ettr", "90 %"),
            )
