"""The same run on several sites: gradients of every step over the network between them, or one exchange for many steps.

    step     = step of a site with its share of the batch + (exchange + outer update) / steps between two
    exchange = 2 (s − 1)/s · parameters · bytes / what a site sends + 2 (s − 1) · half a round trip

for s sites in a ring, beside nothing.  After local steps the changes that each site made are averaged, and a second
optimizer takes them as a gradient (DiLoCo): it keeps the weights of the last exchange and a momentum, in 32 bits.
References: Stich (2018), local SGD; Douillard et al. (2023), DiLoCo.
"""

from __future__ import annotations

import msgspec

from datahall.breakdown import Breakdown, assumed, chosen, given, modelled, product, quotient, total
from datahall.scenario.sections.sites import Sites
from datahall.training.ladder.climb import Effect, effect_of
from datahall.training.layout.layout import Layout
from datahall.training.leaf import DEGREES, Degrees, block_widths, counted, expert_widths, part_of_bandwidth
from datahall.training.pipeline.figure import step_figure
from datahall.training.setup import Machine, built
from datahall.training.step.exchange_figure import ExchangeFigures
from datahall.training.step.passes import STREAM_SHARE
from datahall.workload.parameters import count_parameters

OUTER_BYTES = (
    4.0  # of a value that sites exchange after local steps, and of each that the second optimizer keeps
)
KEPT_VALUES = 2.0  # of a parameter: the weight of the last exchange, and a momentum
UPDATED_BYTES = 24.0  # moved for a parameter: own weight and both of these read, all three written


class SiteStep(msgspec.Struct, frozen=True, kw_only=True):
    """A step of a run on several sites."""

    site: Effect  # a step of one of them, with its share of the batch
    num_between: int  # steps from one exchange to the next
    figure: Breakdown  # of the step
    exchange: Breakdown  # once
    kept_bytes: float  # on a chip, for the second optimizer
    beside: Effect  # the run on one site

    @property
    def step_s(self) -> float:
        return self.figure.value

    @property
    def memory_bytes(self) -> float:
        return self.site.memory_bytes + self.kept_bytes

    @property
    def headroom_bytes(self) -> float:
        return self.site.headroom_bytes - self.kept_bytes

    @property
    def fits(self) -> bool:
        return self.headroom_bytes >= 0

    @property
    def missing_bytes(self) -> float:
        """What a chip lacks to hold it."""
        return max(0.0, -self.headroom_bytes)

    @property
    def more_bytes(self) -> float:
        """What a chip holds beside what it does on one site."""
        return self.memory_bytes - self.beside.memory_bytes

    @property
    def gain(self) -> float:
        """How many times faster it is than on one site."""
        return self.beside.step_s / self.step_s

    @property
    def busy_fraction(self) -> float:
        """Share of the time in which a site does steps of its own."""
        return self.site.step_s / self.step_s


class Apart(msgspec.Struct, frozen=True, kw_only=True):
    """A run on several sites, synchronous and with local steps; or why it cannot be."""

    asked: Sites
    synchronous: SiteStep | None = None
    local: SiteStep | None = None
    why_not: str = ""


def apart(one: Effect, machine: Machine, asked: Sites) -> Apart:
    """A run with its replicas spread over sites, each with as many chips."""
    top = one.setting
    num, layout = asked.num_sites, top.layout
    if layout.dp % num or top.job.global_batch % num:
        return Apart(asked=asked, why_not=f"{layout.dp:,} replicas do not divide over {num:,} sites")
    cluster = built(machine, top.cluster.num_chips // num)
    if cluster is None:
        return Apart(
            asked=asked, why_not=f"the fabric is not made for {top.cluster.num_chips // num:,} chips"
        )
    group = layout.shard if (layout.dp // num) % max(1, layout.shard) == 0 else 0
    site = effect_of(
        msgspec.structs.replace(
            top,
            cluster=cluster,
            layout=msgspec.structs.replace(layout, dp=layout.dp // num, shard=group),
            job=msgspec.structs.replace(top.job, global_batch=top.job.global_batch // num),
        )
    )
    return Apart(
        asked=asked,
        synchronous=_each_step(one, site, asked),
        local=_many_steps(one, site, asked),
    )


def _each_step(one: Effect, site: Effect, asked: Sites) -> SiteStep:
    job, framework = site.setting.job, site.setting.framework
    exchange = _exchange(
        site, asked, framework.sent_bytes(job.value_bytes), "gradients as they leave the chips"
    )
    figure = total("step on several sites", [_own_step(site, asked), exchange])
    return SiteStep(site=site, num_between=1, figure=figure, exchange=exchange, kept_bytes=0.0, beside=one)


def _many_steps(one: Effect, site: Effect, asked: Sites) -> SiteStep:
    exchange = _exchange(site, asked, OUTER_BYTES, "changes of the weights, in 32 bits")
    setting = site.setting
    kept = ExchangeFigures(
        setting.job, setting.cluster, setting.layout, setting.framework, _OfASite(setting.layout, asked)
    ).owned()
    moved = product(
        "moved by the second optimizer",
        [kept, assumed("bytes of a parameter", UPDATED_BYTES, "bytes", "three values read, three written")],
        "bytes",
    )
    rate = part_of_bandwidth(
        setting.cluster.chip, STREAM_SHARE, "a streaming update reaches about this share"
    )
    update = quotient("update of the second optimizer", moved, rate, "s")
    between = given("steps between two exchanges", asked.local_steps, "count", field="local_steps")
    once = quotient("for each step", total("once", [exchange, update]), between, "s")
    return SiteStep(
        site=site,
        num_between=asked.local_steps,
        figure=total("step on several sites with local steps", [_own_step(site, asked), once]),
        exchange=exchange,
        kept_bytes=KEPT_VALUES * OUTER_BYTES * kept.value,
        beside=one,
    )


def _own_step(site: Effect, asked: Sites) -> Breakdown:
    return step_figure(site.run, _OfASite(site.setting.layout, asked)).named("step of a site")


class _OfASite(Degrees):
    """The numbers of a layout on one of several sites, which has its share of chips and batch."""

    def __init__(self, layout: Layout, asked: Sites) -> None:
        super().__init__(layout, planned=True)
        self.sites = given("sites", asked.num_sites, "count", field="sites")

    def number(self, name: str) -> Breakdown:
        return chosen(name, getattr(self.layout, DEGREES[name]), "count", "of the layout on each site")

    def replicas(self) -> Breakdown:
        return self.number("replicas")

    def chips(self) -> Breakdown:
        every = given("chips", self.layout.num_chips * self.sites.value, "count", field="chips")
        return quotient("chips of a site", every, self.sites, "count")

    def batch(self, global_batch: int) -> Breakdown:
        every = given("global batch", global_batch * self.sites.value, "count", field="global_batch")
        return quotient("batch of a site", every, self.sites, "count")


def _exchange(site: Effect, asked: Sites, value_bytes: float, why: str) -> Breakdown:
    """What sites say to each other once [s]."""
    model, setting = site.setting.job.model, site.setting
    every = float(count_parameters(model).total)
    widths = [*block_widths(model), *(expert_widths(model) if model.moe is not None else [])]
    parameters = counted(model, "parameters", every, "parameters", "all layers and tables", *widths)
    sites = given("sites", asked.num_sites, "count", field="sites")
    ring = 2.0 * (asked.num_sites - 1.0)
    leaves = modelled(
        "times each byte leaves a site",
        ring / asked.num_sites,
        "ratio",
        "a ring reduces, then gathers",
        sites,
    )
    size = product(
        "sent by a site",
        [parameters, assumed("bytes of a value", value_bytes, "bytes", why), leaves],
        "bytes",
    )
    ports = setting.cluster.num_chips * setting.cluster.system.nic_bytes_per_s
    rate = given("what a site sends", asked.wan_bytes_per_s, "bytes_per_s", field="wan")
    if 0 < ports < asked.wan_bytes_per_s:
        rate = modelled("what a site sends", ports, "bytes_per_s", "no more than its ports do", rate)
    hops = modelled("messages one after the other", ring, "count", "around the ring, there and back", sites)
    way = quotient(
        "way from site to site",
        given("round trip", asked.round_trip_s, "s", field="round_trip"),
        assumed("there and back", 2, "count", "both ways take as long"),
        "s",
    )
    parts = [quotient("moving it", size, rate, "s"), product("on its way", [hops, way], "s")]
    return total("exchange between sites", parts)
