"""A training job on a site: what it takes from the grid, how that swings, and what each remedy makes of it."""

from __future__ import annotations

from functools import cached_property

import msgspec

from datahall.breakdown import Breakdown, again, derived, quotient, total
from datahall.catalog import Catalog
from datahall.catalog.entries.site.buffer import Buffer
from datahall.catalog.entries.site.grid import Grid
from datahall.power.activity import (
    IDLE,
    checkpoint_activity,
)
from datahall.power.carbon import Day, day_of
from datahall.power.chip import chip_power_w
from datahall.power.site import (
    Building,
    Machines,
    building_of,
    drawn,
    machines_of,
    provisioned,
    servers_of,
    wall_w,
)
from datahall.power.swing.battery import Need, binds, num_units, stop_need, trace_need
from datahall.power.swing.remedies import REMEDIES, Stores, all_asked, size_of
from datahall.power.swing.remedy import Remedied
from datahall.power.swing.spectrum import Spectrum, spectrum
from datahall.power.swing.timeline import (
    Timeline,
)
from datahall.power.swing.trace import Trace, step_trace, together
from datahall.power.training import TrainingPower
from datahall.scenario.sections.operations.site import USUAL_RAMP, Site
from datahall.training.pipeline.execution import Execution
from datahall.units import parse

CHECKPOINT, STOPPED = "checkpoint", "stopped"
SUPERCAPACITOR, CAPACITOR = "supercapacitor-48v", "gb300-supply"


class Event(msgspec.Struct, frozen=True, kw_only=True):
    """All chips leaving their step at once."""

    name: str
    after_w: float  # of the site
    change_w: float
    need: Need  # to let the grid follow at its ramp
    num_batteries: int
    ramp_s: float  # that takes


class Assessment(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """A step of all chips of a site."""

    execution: Execution
    asked: Site
    catalog: Catalog
    num_chips: int  # of the site, at work or not

    @cached_property
    def machines(self) -> Machines:
        return machines_of(self.execution.cluster, self.catalog, self.num_chips)

    @cached_property
    def building(self) -> Building:
        return building_of(self.asked, self.catalog)

    @property
    def num_idle(self) -> int:
        return self.num_chips - self.execution.layout.num_chips

    @cached_property
    def power(self) -> TrainingPower:
        """What its chips do and draw."""
        return TrainingPower(run=self.execution)

    @property
    def timeline(self) -> Timeline:
        return self.power.timeline

    @property
    def chip(self) -> Breakdown:
        """Mean power of a chip at work."""
        return self.power.chip

    @cached_property
    def levels_w(self) -> dict[str, float]:
        """What a chip draws in each phase of the step, in a checkpoint, and when its job has stopped [W]."""
        chip, host = self.execution.cluster.chip, self.execution.cluster.host
        copying = checkpoint_activity(host.copied_bytes_per_s, chip)
        left = {CHECKPOINT: copying, STOPPED: IDLE}
        return self.power.levels_w | {name: chip_power_w(chip, one) for name, one in left.items()}

    @cached_property
    def provisioned(self) -> Breakdown:
        return provisioned(self.machines, self.building)

    @property
    def server_w(self) -> float:
        """A server by its nameplate, or all its parts at their limits."""
        return servers_of(self.provisioned).value / self.machines.num_servers

    @cached_property
    def drawn(self) -> Breakdown:
        return drawn(self.machines, self.building, self.chip, self.num_idle)

    @cached_property
    def trace(self) -> Trace:
        """The site through a step, before any remedy.

        Servers swing, with the losses of what feeds them; network, storage and cooling are too slow, or do not.
        """
        walls_w = {phase: wall_w(self.machines, level) for phase, level in self.levels_w.items()}
        servers = step_trace(self.timeline, walls_w, time_constant_s=self.asked.time_constant_s)
        summed = together(
            servers, coherence_fraction=self.asked.coherence_fraction, num_nodes=self.machines.num_nodes
        ).times(1.0 + self.building.electrical.value)
        return summed.plus(self.drawn.value - summed.mean_w)

    @cached_property
    def spectrum(self) -> Spectrum:
        return spectrum(self.trace)

    @cached_property
    def need(self) -> Need:
        """What a store must hold and deliver to even the step out altogether."""
        return trace_need(self.trace)

    @property
    def grid(self) -> Grid:
        return self.catalog.grid(self.asked.grid)

    @cached_property
    def day(self) -> Day:
        """The carbon of its grid through a day."""
        return day_of(self.grid, self.catalog)

    @property
    def battery(self) -> Buffer:
        return self.catalog.buffer(self.asked.battery_type)

    @cached_property
    def stores(self) -> Stores:
        """What its energy can be held in."""
        return Stores(
            capacitor=self.catalog.buffer(CAPACITOR),
            num_chips=self.execution.layout.num_chips,
            supercapacitor=self.catalog.buffer(SUPERCAPACITOR),
            battery=self.battery,
        )

    @cached_property
    def as_asked(self) -> Remedied:
        """The site with all remedies that were asked for, one after the other."""
        return all_asked(self.asked, self.stores, self.trace)

    @property
    def is_remedied(self) -> bool:
        """Whether a remedy was asked for."""
        return any(one.asked(self.asked) for one in REMEDIES)

    @cached_property
    def remedy_sizes(self) -> tuple[float, ...]:
        """How large each remedy is in the comparison of them: as asked, or as it is weighed."""
        return tuple(size_of(one, self.asked, self.stores, self.trace) for one in REMEDIES)

    @cached_property
    def remedies(self) -> tuple[Remedied, ...]:
        """Each remedy alone."""
        return tuple(
            one.applied(self.stores, self.trace, size)
            for one, size in zip(REMEDIES, self.remedy_sizes, strict=True)
        )

    @property
    def ramp_w_per_s(self) -> float:
        """The ramp that a stop is sized for."""
        return self.asked.ramp_limit_w_per_s or parse(USUAL_RAMP, "w_per_s")

    @property
    def ramp_w_per_min(self) -> float:
        """The same, as operators of grids say it."""
        return 60.0 * self.ramp_w_per_s

    @cached_property
    def events(self) -> tuple[Event, ...]:
        """A checkpoint, and the job stopping: all chips fall at once, and the grid may follow at its ramp."""
        return tuple(self._event(name) for name in (CHECKPOINT, STOPPED))

    def _event(self, name: str) -> Event:
        machines, chips = self.machines, self.execution.layout.num_chips
        fall_w = wall_w(machines, self.chip.value) - wall_w(machines, self.levels_w[name])
        after_w = self.drawn.value - chips * fall_w * (1.0 + self.building.electrical.value)
        if name == CHECKPOINT:  # chips whose job goes on keep their floor
            after_w = max(after_w, self.asked.power_floor_fraction * self.trace.peak_w)
        change_w = self.site_w - after_w
        need = stop_need(change_w, self.ramp_w_per_s)
        return Event(
            name=name,
            after_w=after_w,
            change_w=change_w,
            need=need,
            num_batteries=num_units(self.battery, need),
            ramp_s=change_w / self.ramp_w_per_s,
        )

    @property
    def stop(self) -> Event:
        """The job stopping."""
        return self.events[-1]

    @cached_property
    def with_remedies(self) -> Breakdown:
        """What the site draws in the mean, with what its remedies burn or lose."""
        if not self.is_remedied:
            return self.drawn
        burnt = derived("burnt or lost by its remedies", self.as_asked.cost_w, "w", "power/swing/remedies.py")
        return total("site power, drawn with its remedies", (self.drawn, burnt))

    @property
    def site_w(self) -> float:
        """The same [W]."""
        return self.with_remedies.value

    @property
    def chip_site_w(self) -> float:
        """Of which for one chip."""
        return self.site_w / self.num_chips

    @property
    def step_hz(self) -> float:
        """Steps a second."""
        return 1.0 / self.execution.step_s

    @property
    def busiest(self) -> str:
        """The phase in which a chip draws the most."""
        return max(self.timeline.times_s(), key=self.levels_w.__getitem__)

    @property
    def idlest(self) -> str:
        """The phase in which it draws the least."""
        return min(self.timeline.times_s(), key=self.levels_w.__getitem__)

    @cached_property
    def together_fraction(self) -> float:
        """The swing over what it would be if all chips went from the one to the other at once."""
        high_w, low_w = (wall_w(self.machines, self.levels_w[phase]) for phase in (self.busiest, self.idlest))
        all_w = self.execution.layout.num_chips * (high_w - low_w) * (1.0 + self.building.electrical.value)
        return min(1.0, self.trace.swing_w / all_w) if all_w else 1.0

    @property
    def num_even(self) -> int:
        """Containers that even the step out."""
        return num_units(self.battery, self.need)

    @property
    def binds(self) -> str:
        """Whether power or energy says how many that takes."""
        return binds(self.battery, self.need)

    @property
    def can_be_even(self) -> bool:
        """Whether there can be as many as even the step out."""
        return self.num_even <= self.stores.most_batteries

    @property
    def token(self) -> Breakdown:
        """Energy of the site for a token that is trained on."""
        per_s = self.execution.tokens_per_s
        rate = derived("tokens per second", per_s, "tokens_per_s", "of the simulated step")
        return quotient("energy of a token", again(self.with_remedies), rate, "j_per_token")

    @property
    def token_j(self) -> float:
        """The same [J]."""
        return self.token.value
