"""How often one part fails and how long it is out, as chains down to what was published."""

from __future__ import annotations

import msgspec

from datahall.breakdown import Breakdown, derived, fact, given, product, quotient, total
from datahall.catalog import Catalog
from datahall.catalog.entries.failures import FailurePreset
from datahall.catalog.fact import Fact
from datahall.counted import counted
from datahall.reliability.asked import gpu_fleets
from datahall.reliability.process import Cause, FailureProcess, table_of
from datahall.units import DAY_S

RESET = "node-reset"  # how a node comes back that needs no repair


class Rates(msgspec.Struct, frozen=True, kw_only=True):
    """What is asked of failures of one cluster: its process, and where that is from."""

    process: FailureProcess
    catalog: Catalog
    stated: bool = False  # whether somebody stated the rate

    @property
    def node(self) -> Breakdown:
        """Failures of one node per day, all causes together."""
        rate = self._own
        if self.stated:
            return given("failures of a node per day", rate, "per_node_day", field="failure_rate")
        published = _published(self.process.preset)
        low, high, basis = _spread(self.process.preset, self.catalog)
        ratio = derived(
            "such a node beside theirs", rate / published.value, "ratio", "what it has as many of as chips"
        )
        known = published.with_band(low, high, basis)
        return product("failures of a node per day", [known, ratio], "per_node_day")

    @property
    def _own(self) -> float:
        """The same without what nodes share on top of what was published."""
        return sum(one.rate_per_node_day for one in self.process.causes if not one.is_shock)

    def blamed(self, component: str) -> list[Cause]:
        """The causes that a component is to blame for, or what is part of it."""
        causes = (one for one in self.process.causes if not one.is_shock)
        return [one for one in causes if self._whole(one.component) == component]

    def _whole(self, name: str) -> str:
        """What a component is part of, and fails as; itself where it is part of none."""
        one, seen = self.catalog.component(name), {name}
        while one.part_of and one.part_of not in seen:
            seen.add(one.part_of)
            one = self.catalog.component(one.part_of)
        return one.name

    def of_causes(self, name: str, component: str, num_in_node: float) -> Breakdown | None:
        """Failures of one of the parts of a node per day by what counts as its causes; None where nothing does."""
        those = self.blamed(component)
        if not those:
            return None
        share = sum(one.rate_per_node_day for one in those) / self._own
        causes = derived(
            "share of its causes", share, "fraction", ", ".join(one.name for one in those).lower()
        )
        each = derived("of them in a node", num_in_node, "count")
        whole = product("failures of a node by it per day", [self.node, causes], "per_day")
        return quotient(name, whole, each, "per_day")

    def of_shared(self, name: str, component: str, num_nodes: int) -> Breakdown | None:
        """The same of a part that so many nodes share: as often as theirs would fail, each time for all of them."""
        rate = self.of_causes(name, component, 1) or self._elsewhere(name, component)
        if rate is None or num_nodes == 1:
            return rate
        nodes = derived("nodes that share it", num_nodes, "count")
        return product(name, [rate.named("failures of a node by it per day"), nodes], "per_day")

    def _elsewhere(self, name: str, component: str) -> Breakdown | None:
        """A share as large as another fleet counted, where this one counted causes and had none of it."""
        if not any(one.num_interruptions for one in table_of(self.process.preset, self.catalog).causes):
            return None
        for other in self.catalog.failure_presets():
            for cause in other.causes:
                if cause.num_interruptions and self.catalog.component(cause.component).name == component:
                    found = other.facts[f"causes.{cause.name}.num_interruptions"]
                    count = fact(f"{cause.name.lower()}, {other.title}", found.value, "count", found.source)
                    every = derived(
                        "of all causes there", sum(one.num_interruptions for one in other.causes), "count"
                    )
                    share = quotient("share of its causes there", count, every, "fraction")
                    return product(name, [self.node, share], "per_day")
        return None

    def of_part(self, name: str, component: str) -> Breakdown:
        """Failures of one part per day, as somebody counted parts."""
        found = self.catalog.component(component).facts["rate_per_day"]
        return _banded(fact(name, found.value, "per_day", found.source, note=found.note), found)

    def out(self, component: str) -> Breakdown:
        """How long a part is out in the mean: the repair where it needs one, a reset where it does not [s]."""
        one = self.catalog.component(component)
        again = self.catalog.reroute(RESET).facts["reroute_s"]
        reset = fact("time to reset", again.value, "s", again.source, note=again.note)
        if "repair_mean_s" not in one.facts:
            return reset
        repair = self.out_until_repaired(component)
        if one.repair_fraction in (0.0, 1.0):
            return repair
        share = one.facts["repair_fraction"]
        needs = fact("share that needs a repair", share.value, "fraction", share.source)
        rest = derived("share that does not", 1.0 - share.value, "fraction")
        return total(
            "time out",
            [product("repaired", [needs, repair], "s"), product("reset", [rest, reset], "s")],
        )

    def out_until_repaired(self, component: str) -> Breakdown:
        """How long a part is out that is always repaired or replaced [s]."""
        mean = self.catalog.component(component).facts["repair_mean_s"]
        return _banded(fact("time to repair", mean.value, "s", mean.source, note=mean.note), mean)


def _published(preset: FailurePreset) -> Breakdown:
    """Failures of a node per day by a source: its rate, the sum of its causes, or a count over nodes and days."""
    name = f"failures of a node per day, {preset.title}"
    stated = preset.facts.get("stated_rate_per_node_day")
    if stated is not None:
        return fact(name, stated.value, "per_node_day", stated.source, note=stated.note)
    if not preset.num_interruptions:
        rates = [found for key, found in preset.facts.items() if key.endswith(".rate_per_node_day")]
        sums = [fact(one.note or one.label, one.value, "per_node_day", one.source) for one in rates]
        return total(name, sums)
    count, span = preset.facts["num_interruptions"], preset.facts["span_s"]
    interruptions = fact("interruptions", count.value, "count", count.source)
    nodes = derived("nodes", preset.num_chips / preset.num_node_chips, "count", f"{preset.num_chips:,} chips")
    days = derived("days", span.value / DAY_S, "days")
    return quotient(name, interruptions, product("node-days", [nodes, days], "node-days"), "per_node_day")


def _spread(preset: FailurePreset, catalog: Catalog) -> tuple[float, float, str]:
    """How far a rate may lie from a published one: its own range, or that of fleets that were counted alike."""
    stated = preset.facts.get("stated_rate_per_node_day")
    rate = preset.rate_per_node_day
    if stated is not None and stated.low is not None and stated.high is not None:
        return stated.low / rate, stated.high / rate, f"the range of {stated.source.title}"
    rates = [one.rate_per_node_day for one in gpu_fleets(catalog)]
    fleets = counted(len(rates), "fleet")
    if not preset.is_fleet:
        middle = (min(rates) * max(rates)) ** 0.5
        return min(rates) / middle, max(rates) / middle, f"{fleets} of GPUs lie as far from their middle"
    return min(rates) / rate, max(rates) / rate, f"{fleets} of nodes of eight GPUs, counted by their owners"


def _banded(figure: Breakdown, found: Fact) -> Breakdown:
    if found.low is None or found.high is None:
        return figure
    return figure.with_band(
        found.low / found.value, found.high / found.value, f"range of {found.source.title}"
    )
