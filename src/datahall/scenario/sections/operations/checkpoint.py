"""Checkpoints of a training run: where copies go, how often, and what taking one costs."""

from collections.abc import Iterator
from typing import Annotated

from datahall.catalog.entries.failures import COPY_TIERS
from datahall.catalog.entries.model import Model
from datahall.errors import ScenarioError, option
from datahall.scenario.field import Section
from datahall.scenario.kinds import Choice, Flag, Listed, Quantity
from datahall.scenario.sections.deployment import SLOWEST
from datahall.units import fmt

CHIP_STORAGE_BYTES_PER_S = 125e6  # Llama 3 had 2 TB/s for 16,384 chips
USUAL_TIERS = ("remote",)


class Checkpointing(Section, frozen=True, kw_only=True):
    """Tiers of checkpoints, and what a copy costs on each."""

    storage_bytes_per_s: Annotated[
        float | None,
        Quantity(
            f"Remote storage, written by all chips together (default: {fmt(CHIP_STORAGE_BYTES_PER_S, 'bytes_per_s')} "
            "for each chip, as Llama 3 had).",
            least=SLOWEST,
            example="2TB/s",
        ),
    ] = None
    tiers: Annotated[
        tuple[str, ...],
        Listed(
            f"Where copies are kept: {', '.join(COPY_TIERS)} (default: {', '.join(USUAL_TIERS)}).",
            of=Choice("", options=COPY_TIERS),
            flat="tier", metavar="LIST",
        ),
    ] = ()  # fmt: skip
    interval_s: Annotated[
        float | None,
        Quantity(
            "Work between two checkpoints (default: the best of each tier).", above=True, example="10min"
        ),
    ] = None
    blocking_s: Annotated[
        float | None,
        Quantity("Time that a checkpoint stops the run (default: as its tier takes).", example="6s"),
    ] = None
    synchronous: Annotated[
        bool,
        Flag(
            "Stop until a copy is written out, not only until it has left the chips.", against=("blocking",)
        ),
    ] = False
    save_s: Annotated[
        float,
        Quantity(
            "Time that ranks take to agree on files before they write them.", against=("blocking",), rare=True
        ),
    ] = 5.0
    copy_s: Annotated[
        float,
        Quantity("Time that ranks take to agree on a copy in memory.", against=("blocking",), rare=True),
    ] = 0.04

    def problems(self, model: Model | None = None) -> Iterator[ScenarioError]:
        del model
        named = len(self.tiers)
        for name, value in (("interval", self.interval_s), ("blocking", self.blocking_s)):
            if value is not None and named > 1:
                yield ScenarioError(
                    f"{option(name)} is that of one tier, and {named} are named",
                    field=name,
                    hint=f"one tier, e.g. {option('tier', 'remote')}, or leave {option(name)} out",
                )

    def usual(self) -> dict[str, object]:
        return {"tiers": USUAL_TIERS}
