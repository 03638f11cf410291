"""One model in several number formats on one kind of chip: what each holds, and which one does with less."""

from __future__ import annotations

import msgspec

from datahall.catalog import Catalog
from datahall.catalog.entries.model import Model
from datahall.inference.engine.build import replica_of
from datahall.inference.engine.replica import Replica
from datahall.inference.memory.fit import Fit, fits_on, legal_groups, on_group, why_not
from datahall.inference.memory.remedy import longest_context
from datahall.scenario.sections.deployment import Deployment
from datahall.workload.precision import COMMON
from datahall.workload.sharding import Sharding

SHOWN_GROUPS = 4
LARGEST_SHOWN = 8


class Formats(msgspec.Struct, frozen=True, kw_only=True):
    """Replicas that differ in their format alone, the sequences that must fit, and the group where one was said."""

    replicas: dict[str, Replica]  # by format, the one asked for first
    precision: str
    context: int
    num_sequences: int
    tp: int | None

    @property
    def replica(self) -> Replica:
        """In the format asked for."""
        return self.replicas[self.precision]

    def on(self, tp: int, precision: str) -> Fit:
        """One format on a group of chips."""
        return on_group(self.replicas[precision], tp, self.context)

    def smallest(self, precision: str) -> Fit | None:
        """The asked group, or the smallest one, where it holds what was asked."""
        return fits_on(self.replicas[precision], self.context, self.num_sequences, self.tp)

    def nearest(self) -> Fit:
        """The asked group, or where none holds what was asked, the one that comes nearest: with the longest sequences,
        then with the least that is lacking, then of the fewest chips."""
        if self.tp or why_not(self.replica.chip, self.replica.precision):
            return self.on(self.tp or 1, self.precision)
        many = self.num_sequences
        return max(
            (self.on(tp, self.precision) for tp in legal_groups(self.replica.model)),
            key=lambda one: (longest_context(one.capacity, many), -one.missing_bytes(many)),
        )

    def better(self, found: Fit) -> tuple[str, Fit] | None:
        """The first format that holds what was asked on fewer chips, or more sequences on as many."""
        for name in self.replicas:
            other = self.smallest(name)
            if other is not None and (other.tp, -other.num_sequences) < (found.tp, -found.num_sequences):
                return name, other
        return None

    def groups(self) -> list[int]:
        """The groups of one server that are worth a column, and the one asked for."""
        groups = [tp for tp in legal_groups(self.replica.model) if tp <= LARGEST_SHOWN][-SHOWN_GROUPS:]
        return [*groups[1:], self.tp] if self.tp and self.tp not in groups else groups

    def held(self, tp: int, precision: str) -> int | None:
        """Sequences that a format holds on a group; None where the chip cannot multiply in it."""
        if why_not(self.replica.chip, self.replicas[precision].precision):
            return None
        return self.on(tp, precision).num_sequences


def formats_of(
    deployment: Deployment, model: Model, catalog: Catalog, *, context: int, num_sequences: int
) -> Formats:
    """A deployment in the format asked for and in the usual ones."""
    if deployment.tp:
        Sharding(tp=float(deployment.tp)).check(model)
    plain = msgspec.structs.replace(deployment, tp=None)
    return Formats(
        replicas={
            name: replica_of(msgspec.structs.replace(plain, precision=name), model, catalog)
            for name in dict.fromkeys((deployment.precision, *COMMON))
        },
        precision=deployment.precision,
        context=context,
        num_sequences=num_sequences,
        tp=deployment.tp,
    )
