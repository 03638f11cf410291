"""How often a cluster fails: published rates by cause, carried over to other chips, nodes and sizes.

A cause has a rate per node and day, and every failure of a cause takes `num_nodes_lost` nodes at once, so a shared
shock (a rack's power, its coolant) is a cause like the others that takes more of them.  Failures of the cluster are
Poisson with the sum of all rates; a job of every node meets each of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import exp, inf, isfinite, log, sqrt

import msgspec

from datahall.catalog import Catalog
from datahall.catalog.entries.failures import Component, FailurePreset, Tier
from datahall.errors import ScenarioError, UnsupportedError
from datahall.units import DAY_S

SHOCK = "shock"  # the component of what nodes share, on top of what was published


class Cause(msgspec.Struct, frozen=True, kw_only=True):
    """One way to fail: how often, what it takes, and what of a job is left."""

    name: str
    component: str
    rate_per_node_day: float  # events; of a shared shock each counts once, however many nodes it takes
    repair_fraction: float  # of its events after which the nodes are away until they are repaired
    repair_median_s: float  # 0 where nothing is repaired
    repair_sigma: float  # of the logarithm of the time to repair
    num_nodes_lost: int = 1
    survives: Tier  # the nearest checkpoint that is left: "device", "host", "peer", "local" or "remote"
    ages: bool = False  # whether new nodes have it more often; what is no node's own does not

    @property
    def is_shock(self) -> bool:
        """Whether it is on top of what was published, as somebody says it."""
        return self.component == SHOCK and not self.ages

    @property
    def repair_mean_s(self) -> float:
        """Mean of the log-normal time to repair: median · e^(σ²/2)."""
        return self.repair_median_s * exp(self.repair_sigma**2 / 2)


class Nodes(msgspec.Struct, frozen=True, kw_only=True):
    """Machines of one kind."""

    num_chips: int  # of one
    num_in_rack: int = 1  # that share one power shelf and one coolant loop
    age_s: float | None = None  # when the job starts; None: past their early life


class FailureProcess(msgspec.Struct, frozen=True, kw_only=True):
    """All the ways in which the nodes of one job fail."""

    preset: FailurePreset  # whose rates and causes
    causes: tuple[Cause, ...]
    num_nodes: int
    num_node_chips: int
    num_rack_nodes: int = 1  # that share power and coolant
    job_rate_per_day: float = 0.0  # whatever the number of nodes
    age_s: float | None = None  # of the nodes at the start; None: past their early life
    early_span_s: float = 0.0
    early_shape: float = 1.0  # k of a Weibull hazard: below 1 the new fail more often
    lemon_fraction: float = 0.0
    lemon_ratio: float = 1.0

    @property
    def num_chips(self) -> int:
        return self.num_nodes * self.num_node_chips

    @property
    def rate_per_node_day(self) -> float:
        """Events for each node and day, of all causes."""
        return sum(cause.rate_per_node_day for cause in self.causes)

    @property
    def rate_per_day(self) -> float:
        """Events of the whole job per day, its nodes past their early life: n·r + r_job."""
        return self.num_nodes * self.rate_per_node_day + self.job_rate_per_day


def process_of(
    preset: FailurePreset,
    catalog: Catalog,
    num_nodes: int,
    on: Nodes | None = None,
    *,
    rate_per_node_day: float | None = None,
    job_rate_per_day: float = 0.0,
    shocks: Sequence[Cause] = (),
) -> FailureProcess:
    """Published rates on a cluster of so many nodes.

    What a node has more of when it has more chips fails in proportion to them; what it has once does not.  How much
    more often new nodes fail is that of the nodes which were counted: shocks and a rate of one's own leave it as it is.

    Parameters
    ----------
    preset
        Whose rates.
    num_nodes
        Machines with an operating system of their own.
    on
        What they are like, where not as in the preset.
    rate_per_node_day
        Failures of such a node per day in place of the published number, split among causes as published.
    job_rate_per_day
        Failures per day that do not depend on the size of the job (r_job: 2.2 at RSC-1).
    shocks
        Causes on top of the published ones, e.g. a row's power.

    >>> from datahall.catalog import load
    >>> rsc = process_of(load().failure_preset("rsc-1"), load(), 16384 // 8)
    >>> round(mttf_s(rsc) / 3600, 2)
    1.8
    """
    if num_nodes < 1:
        raise ScenarioError(f"{num_nodes} nodes cannot fail", hint="at least one node")
    nodes = on or Nodes(num_chips=preset.num_node_chips)
    published = _causes(preset, catalog, nodes)
    causes = (*(published if rate_per_node_day is None else scaled(published, rate_per_node_day)), *shocks)
    ageing = catalog.ageing("fleet")
    theirs = _causes(preset, catalog, Nodes(num_chips=preset.num_node_chips))
    return FailureProcess(
        preset=preset,
        causes=causes,
        num_nodes=num_nodes,
        num_node_chips=nodes.num_chips,
        num_rack_nodes=nodes.num_in_rack,
        job_rate_per_day=job_rate_per_day,
        age_s=nodes.age_s,
        early_span_s=ageing.early_span_s,
        early_shape=early_shape(
            ageing.early_fraction, repairs_per_node_day(theirs) * ageing.early_span_s / DAY_S
        ),
        lemon_fraction=ageing.lemon_fraction,
        lemon_ratio=ageing.lemon_ratio,
    )


def _causes(preset: FailurePreset, catalog: Catalog, nodes: Nodes) -> list[Cause]:
    table = table_of(preset, catalog)
    whole = sum(cause.num_interruptions for cause in table.causes)
    found = []
    for cause in table.causes:
        component = catalog.component(cause.component)
        racked = nodes.num_in_rack > 1 and bool(component.in_rack)
        taken = catalog.component(component.in_rack) if racked else component
        share = (
            cause.num_interruptions / whole if whole else cause.rate_per_node_day / table.rate_per_node_day
        )
        grown = nodes.num_chips / preset.num_node_chips if component.per == "chip" else 1.0
        found.append(
            Cause(
                name=cause.name,
                component=component.name,
                rate_per_node_day=preset.rate_per_node_day * share * grown,
                repair_fraction=taken.repair_fraction,
                repair_median_s=taken.repair_median_s if isfinite(taken.repair_median_s) else 0.0,
                repair_sigma=repair_sigma(taken),
                num_nodes_lost=nodes.num_in_rack if racked or component.takes == "rack" else 1,
                survives=taken.survives,
                ages=True,
            )
        )
    return found


def table_of(preset: FailurePreset, catalog: Catalog) -> FailurePreset:
    """The preset whose table of causes splits the rate of one: its own, or that which stands in."""
    if preset.causes:
        return preset
    other = catalog.failure_preset(preset.causes_of)
    if not other.causes:
        raise UnsupportedError(
            f"{other.name}, whose causes {preset.name} takes, has none of its own",
            hint=f"causes_of in the entry of {preset.name}: a preset with a table of causes, e.g. llama-3",
        )
    return other


def shock(rate_per_day: float, num_nodes: int, catalog: Catalog) -> Cause:
    """What so many nodes share and lose at once, so often per day."""
    component = catalog.component(SHOCK)
    return Cause(
        name=f"shared part of {num_nodes:,} nodes",
        component=component.name,
        rate_per_node_day=rate_per_day / num_nodes,
        repair_fraction=component.repair_fraction,
        repair_median_s=component.repair_median_s,
        repair_sigma=repair_sigma(component),
        num_nodes_lost=num_nodes,
        survives=component.survives,
    )


def scaled(causes: Sequence[Cause], rate_per_node_day: float) -> list[Cause]:
    """The same causes in the same proportions, so many of them together."""
    factor = rate_per_node_day / sum(one.rate_per_node_day for one in causes)
    return [msgspec.structs.replace(one, rate_per_node_day=one.rate_per_node_day * factor) for one in causes]


def repair_sigma(component: Component) -> float:
    """Spread of a log-normal time to repair from its mean and median: σ = √(2 ln(mean / median)).

    Repairs are heavy-tailed: at LANL the mean is 355 min and the median 54 min (σ = 1.94).
    """
    if not isfinite(component.repair_mean_s):
        return 0.0
    return sqrt(2.0 * log(component.repair_mean_s / component.repair_median_s))


def mttf_s(process: FailureProcess) -> float:
    """Mean time to failure of a job: M = 1 / (n·r + r_job) [s].

    >>> from datahall.catalog import load
    >>> half = process_of(load().failure_preset("llama-3"), load(), 1024)
    >>> round(mttf_s(half) / 3600, 2)
    6.19
    """
    return DAY_S / process.rate_per_day if process.rate_per_day else inf


def over(process: FailureProcess, span_s: float) -> FailureProcess:
    """The same failures as often as they come in the mean of a time, which nodes begin at their age.

    >>> from datahall.catalog import load
    >>> nodes = Nodes(num_chips=8, age_s=0.0)
    >>> new = process_of(load().failure_preset("llama-3"), load(), 1024, nodes)
    >>> round(mttf_s(over(new, 30 * 86400.0)) / 3600, 2)
    2.52
    """
    if process.age_s is None:
        return process
    more = early_factor(process, process.age_s, span_s)
    causes = [
        msgspec.structs.replace(one, rate_per_node_day=one.rate_per_node_day * more) if one.ages else one
        for one in process.causes
    ]
    return msgspec.structs.replace(process, causes=tuple(causes), age_s=None)


def early_factor(process: FailureProcess, age_s: float, span_s: float) -> float:
    """How much more often nodes fail over a time than past their early life: (H(a + T) − H(a)) / (r·T).

    The hazard of a new node is a Weibull's, r·(a / a₀)^(k−1), until it meets the steady rate r at the age a₀.
    """
    return (lived_s(process, age_s + span_s) - lived_s(process, age_s)) / span_s


def lived_s(process: FailureProcess, age_s: float) -> float:
    """The hazard of a node added up from its first day, over the steady rate: H(a) / r [s]."""
    early_s, shape = process.early_span_s, process.early_shape
    if age_s >= early_s:
        return early_s / shape + (age_s - early_s)
    return early_s / shape * float((age_s / early_s) ** shape)


def early_shape(early_fraction: float, num_steady_repairs: float) -> float:
    """The k at which new nodes have so many repairs on top of the steady ones: r·a₀·(1/k − 1) = share.

    >>> round(early_shape(0.1036, 0.17), 2)
    0.62
    """
    return num_steady_repairs / (num_steady_repairs + early_fraction) if num_steady_repairs else 1.0


def repairs_per_node_day(causes: Sequence[Cause]) -> float:
    """Nodes that leave for repair, for each node and day: r·f·b over all causes."""
    return sum(one.rate_per_node_day * one.repair_fraction * one.num_nodes_lost for one in causes)


def lemon_share(process: FailureProcess) -> float:
    """Share of all failures that bad nodes have: φ·g / (1 − φ + φ·g).

    Published rates are means over all nodes, so a share φ of them that fails g times as often as the others is part of
    every rate; who finds them and leaves them out has (1 − φ) of the nodes and 1 − this share of the failures.

    >>> from datahall.catalog import load
    >>> round(lemon_share(process_of(load().failure_preset("llama-3"), load(), 2048)), 3)
    0.058
    """
    bad = process.lemon_fraction * process.lemon_ratio
    return bad / (1.0 - process.lemon_fraction + bad)
