"""Every store that was asked for, judged: what it delivers, how many chips it feeds, what mends it, what it costs."""

from __future__ import annotations

import msgspec

from datahall.datapath.asked import Asked
from datahall.datapath.checkpoint import busy_fraction, drain_s
from datahall.datapath.cold_start import Load, load_weights
from datahall.datapath.demand import weights_bytes
from datahall.datapath.pipeline import Store
from datahall.datapath.price import egress_usd_per_month, kept_usd_per_month
from datahall.datapath.remedies import Remedy, enough, remedies
from datahall.datapath.scaling import most_chips
from datahall.datapath.supply import Supply, supply
from datahall.scenario.sections.deployment import MOST_CHIPS


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """One store, and what becomes of the chips that read from it."""

    store: Store
    supply: Supply
    dataset_bytes: float
    promised_fraction: float
    num_chips_fed: int | None  # None: as many as there may be, where every host has storage of its own
    remedies: tuple[Remedy, ...]
    usd_per_month: float | None
    drain_s: float
    busy_fraction: float
    load: Load | None  # of a model's weights

    @property
    def keeps(self) -> bool:
        """Whether chips work as much as promised."""
        return self.supply.utilisation_fraction >= self.promised_fraction

    @property
    def holds(self) -> bool:
        """Whether there is room for the data set: in each host, or in what hosts share."""
        return self.dataset_bytes <= self.store.num_units * self.store.storage.capacity_bytes

    @property
    def written_bytes_per_s(self) -> float:
        """What checkpoints write on average [B/s]."""
        return self.store.checkpoint_bytes / self.store.interval_s

    @property
    def written_over_read_ratio(self) -> float:
        """What checkpoints write over what data is read."""
        return self.written_bytes_per_s / self.supply.needed_bytes_per_s

    @property
    def mended_by(self) -> Remedy | None:
        """The cheapest change that is enough, or else that helps most; None where none is needed or helps."""
        most = max(self.remedies, key=lambda one: one.utilisation_fraction, default=None)
        return enough(self.remedies, self.promised_fraction) or most


def judged(asked: Asked) -> tuple[Verdict, ...]:
    """Every store in the order it was named."""
    return tuple(_judged(asked, store) for store in asked.stores)


def best(rows: tuple[Verdict, ...]) -> Verdict:
    """The store that keeps chips at work most; the first of those that do as well."""
    return max(rows, key=lambda row: row.supply.utilisation_fraction)


def cheapest(rows: tuple[Verdict, ...]) -> Verdict | None:
    """The store whose own cheapest change that is enough costs least; None where one needs none, or none is enough."""
    if any(row.keeps for row in rows):
        return None
    mended = [(one.rank, row) for row in rows if (one := enough(row.remedies, row.promised_fraction))]
    return min(mended, key=lambda pair: pair[0])[1] if mended else None


def _judged(asked: Asked, store: Store) -> Verdict:
    job, promised = asked.job, asked.promised_fraction
    found = supply(job, store)
    kept = kept_usd_per_month(store.storage, job.dataset_bytes)
    moved = found.delivered_bytes_per_s * (1.0 - found.hit_fraction)
    egress = egress_usd_per_month(store.storage, moved) if store.away_s else 0.0
    return Verdict(
        store=store,
        supply=found,
        dataset_bytes=job.dataset_bytes,
        promised_fraction=promised,
        num_chips_fed=_fed(most_chips(job, store, promised)),
        remedies=remedies(job, store, promised, asked.host_memory_bytes),
        usd_per_month=None if kept is None else kept + (egress or 0.0),
        drain_s=drain_s(job, store),
        busy_fraction=busy_fraction(job, store),
        load=_load(asked, store),
    )


def _fed(num_chips: int) -> int | None:
    return num_chips if num_chips < MOST_CHIPS else None


def _load(asked: Asked, store: Store) -> Load | None:
    if asked.model is None:
        return None
    size = weights_bytes(asked.model)
    return load_weights(asked.loader, store, size, asked.num_replicas)  # a replica stands in one host here
