"""`show power`: what a training job takes from the grid, how it swings, what evens it out, and its carbon."""

from __future__ import annotations

from msgspec import structs

from datahall.answer import Answer, Cell
from datahall.answers.follow import follow
from datahall.answers.idle import idle_network
from datahall.answers.power.charts import hours_chart, parts_chart, power_chart, spectrum_chart, stop_chart
from datahall.answers.power.idle import idle_building
from datahall.answers.power.tables import (
    cooling_table,
    events_table,
    grids_table,
    parts_table,
    phases_table,
    remedies_table,
)
from datahall.answers.power.words import RISKY_BAND
from datahall.answers.run.words import host_link_notes
from datahall.answers.training.idle import idle_layout
from datahall.cluster.joined import Joined
from datahall.cluster.used import used_by_machine
from datahall.counted import counted
from datahall.errors import option
from datahall.planner.training.laid.site import job_site
from datahall.planner.training.laid.step import Step
from datahall.power.account import Energy
from datahall.power.assessment import Assessment
from datahall.power.carbon import LIFE_YEARS
from datahall.power.limits import Broken, fixing
from datahall.power.rack import Rack
from datahall.power.site import it_of
from datahall.scenario.kinds import Plain
from datahall.scenario.scenario import Scenario
from datahall.scenario.sections.operations.site import Site
from datahall.training.layout.asked import layout_inputs
from datahall.units import fmt, short

AT_ONCE = 0.95  # of the swing of all chips together, from which they are said to swing so


def show_power(scenario: Scenario) -> Answer:
    """A site with so many chips that train one model: its power by parts and over time, remedies, energy, carbon."""
    site = job_site(scenario)
    found, step, rack, broken, energy = site.power, site.step, site.rack, site.broken, site.energy
    return Answer(
        kind="site power",
        inputs={**step.used, **used_by_machine(scenario, step.execution.cluster), "chips": step.num_chips},
        verdict="yes" if site.can_be else "no",
        headline=_headline(found, step, broken, rack),
        binding=_binding(found),
        results=_results(found, step, rack, energy),
        tables=(
            parts_table(found),
            phases_table(found),
            remedies_table(found),
            events_table(found),
            cooling_table(found, rack),
            grids_table(found),
        ),
        figure=found.provisioned,
        charts=(
            power_chart(found),
            spectrum_chart(found),
            stop_chart(found),
            parts_chart(found),
            hours_chart(found),
        ),
        notes=(
            *_way_out(broken),
            *_notes(scenario, found, step, rack, energy),
            *host_link_notes(step.execution.cluster),
        ),
        sources=(*found.drawn.citations(), *(fact.source for fact in found.battery.facts.values())),
        next_commands=_next(scenario, found, step, broken),
    )


def prepare(scenario: Scenario) -> None:
    """Look up the building, the grid, the way to cool and the battery, without laying out a run."""
    asked = scenario.one(Site)
    scenario.catalog.facility(asked.facility)
    scenario.catalog.grid(asked.grid)
    scenario.catalog.buffer(asked.battery_type)
    if asked.cooling:
        scenario.catalog.cooling(asked.cooling)


def _way_out(broken: tuple[Broken, ...]) -> tuple[str, ...]:
    """What would keep each limit, and what that burns or loses."""
    return tuple(
        f"{option(one.field)} is kept by "
        + ", or by ".join(
            f"{option(fix.field)} of {fix.value}"
            + (f" (which costs {fmt(fix.cost_w, 'w', 3)})" if fix.cost_w else "")
            for fix in one.fixes
        )
        for one in broken
        if one.fixes
    )


def _headline(found: Assessment, step: Step, broken: tuple[Broken, ...], rack: Rack) -> str:
    run, trace = found.execution, found.as_asked.trace
    what = f"{found.num_chips:,} × {run.cluster.chip.title} that train {run.job.model.title or run.job.model.name}"
    if step.memory is not None and not step.fits:
        most, limit = fmt(step.memory.most_bytes, "bytes", 3), fmt(step.memory.limit_bytes, "bytes", 3)
        return f"No: {what} do not run: the fullest stage takes {most} of {limit}."
    if not rack.is_cooled:
        return (
            f"No: {rack.cooling.title} does not cool {what}: a rack has {fmt(rack.power_w, 'w', 3)}, and it carries "
            f"{fmt(rack.cooling.rack_limit_w, 'w', 3)}."
        )
    if broken:
        return f"No for {what}: {'; '.join(map(_over, broken))}."
    drawn = f"{what} draw {fmt(found.site_w, 'w', 3)}, of {fmt(found.provisioned.value, 'w', 3)} to be provisioned"
    before, each = fmt(found.trace.swing_w, "w", 3), f"in each step of {fmt(run.step_s, 's', 3)}"
    if found.trace.is_flat:
        return f"{drawn}, and that is flat."
    if not found.is_remedied:
        return f"{drawn}, and swing by {before} up and down {each}; {_evened(found)}."
    if trace.is_flat:
        return f"{drawn}; with what was asked for, that is flat, instead of {before} up and down {each}."
    now = fmt(trace.swing_w, "w", 3)
    return f"{drawn}; with what was asked for, {now} up and down {each} instead of {before}."


def _evened(found: Assessment) -> str:
    battery, need = found.battery, found.need
    num = found.num_even
    much = f"({fmt(need.power_w, 'w', 3)}, but only {fmt(need.energy_j, 'j', 3)})"
    if not found.can_be_even:
        enough = (
            f"it takes those of {counted(num, battery.unit)}, and there are {found.stores.most_batteries:,}"
        )
        return f"{battery.title} are not enough to even that out {much}: {enough}"
    evens = "evens" if num == 1 else "even"
    return f"{counted(num, battery.unit)} of {battery.title} {evens} that out {much}"


def _over(one: Broken) -> str:
    if one.is_ramp:
        return (
            f"{one.what} {fmt(one.value_w, 'w', 3)}, and the grid allows {fmt(one.limit_w, 'w', 3)} a minute"
        )
    return (
        f"{one.what} {fmt(one.value_w, 'w', 3)}, {fmt(one.over_fraction, 'fraction')} above the limit of "
        f"{fmt(one.limit_w, 'w', 3)}"
    )


def _binding(found: Assessment) -> str:
    busiest, idlest, seen = found.busiest, found.idlest, found.spectrum
    return (
        f"A chip draws {fmt(found.levels_w[busiest], 'w', 3)} in {busiest} and {fmt(found.levels_w[idlest], 'w', 3)} "
        f"in “{idlest}”, {_in_step(found)}. The swing is largest at {fmt(seen.dominant_hz, 'hz', 3)}, and "
        f"{fmt(seen.band_fraction, 'fraction')} of its energy lies {RISKY_BAND}, where grids and turbines resonate."
    )


def _in_step(found: Assessment) -> str:
    """Whether chips do so at once."""
    if found.together_fraction >= AT_ONCE:
        return "all at the same time"
    return (
        "though not all at the same time: the site swings by "
        f"{fmt(found.together_fraction, 'fraction')} of what it would if they did"
    )


def _results(found: Assessment, step: Step, rack: Rack, energy: Energy) -> dict[str, Cell]:
    band, trace, stop = found.provisioned.band, found.as_asked.trace, found.stop
    return {
        "provisioned_w": found.provisioned.value,
        "provisioned_low_w": band.low if band else None,
        "provisioned_high_w": band.high if band else None,
        "it_w": it_of(found.drawn).value,
        "drawn_w": found.drawn.value,
        "site_w": found.site_w,
        "pue_ratio": found.building.pue.value,
        "chip_w": found.chip.value,
        "chip_site_w": found.chip_site_w,
        "peak_w": trace.peak_w,
        "low_w": trace.low_w,
        "swing_w": trace.swing_w,
        "raw_swing_w": found.trace.swing_w,
        "fastest_w_per_s": trace.ramp_w_per_s,
        "step_s": found.execution.step_s,
        "step_hz": found.step_hz,
        "dominant_hz": found.spectrum.dominant_hz,
        "band_fraction": found.spectrum.band_fraction,
        "even_power_w": found.need.power_w,
        "even_energy_j": found.need.energy_j,
        "even_rate_per_hour": found.need.rate_per_hour,
        "even_batteries": found.num_even,
        "stop_w": stop.change_w,
        "stop_energy_j": stop.need.energy_j,
        "stop_batteries": stop.num_batteries,
        "rack_w": rack.power_w,
        "rack_servers": rack.num_servers,
        "num_racks": rack.num_racks,
        "cooling": rack.cooling.title,
        "cooling_limit_w": rack.cooling.rack_limit_w,
        "tokens_per_s": found.execution.tokens_per_s,
        **{name: value for name, value in structs.asdict(energy).items() if value is not None},
        **(
            {"memory_bytes": step.memory.most_bytes, "limit_bytes": step.memory.limit_bytes}
            if step.memory
            else {}
        ),
        "layout": found.execution.layout.words,
        "num_idle_chips": found.num_idle,
    }


def _notes(scenario: Scenario, found: Assessment, step: Step, rack: Rack, energy: Energy) -> tuple[str, ...]:
    run, machines, asked = found.execution, found.machines, found.asked
    laid = "the fastest layout, for nobody said one" if step.is_searched else "as asked"
    home = scenario.catalog.facility(asked.facility).title
    if asked.pue_ratio is not None:
        home = "as asked" if idle_building(scenario) else f"as asked, with electrical losses as of {home}"
    lines = [
        f"{run.layout.words}, global batch {run.job.global_batch:,} ({laid}); {run.tokens_per_s:,.0f} tokens/s, "
        f"{fmt(energy.token_j, 'j_per_token', 3)}",
        f"{counted(rack.num_racks, 'rack')} of {counted(rack.num_servers, machines.server.form)}, "
        f"{fmt(rack.power_w, 'w', 3)}{' each' if rack.num_racks > 1 else ''}, cooled by {rack.cooling.title}; PUE "
        f"{short(found.building.pue.value)} ({home})",
        *_emitted(found, energy),
        *idle_building(scenario),
        *idle_layout(scenario, run.layout),
        *idle_network(scenario, [Joined(run.cluster.chip, run.cluster.system, run.layout.num_chips)]),
        "servers swing with the losses of what feeds them; network, storage and cooling are taken as steady",
        f"supplies smooth with a time constant of {fmt(asked.time_constant_s, 's')}; nobody published "
        "measurements below a second, so ramps are a model's",
    ]
    if not step.fits:
        lines.append(
            "what is said of its power would be so if there were room; recomputation, more pp or tp, or ZeRO 2 take "
            "less memory, and where nothing is said of the layout one that fits is looked for"
        )
    if not machines.has_nameplate:
        lines.append(
            "what a server with this chip may draw is not published: provisioned is all its parts at their limits"
        )
    if found.num_idle:
        lines.append(f"{found.num_idle:,} chips have no work and draw what an idle chip does")
    if machines.num_spare_chips:
        lines.append(
            f"{counted(machines.num_servers, machines.server.form)} have {machines.num_spare_chips:,} chips more than "
            "were asked for, which idle"
        )
    limit_w = asked.site_limit_w
    if limit_w is not None and found.as_asked.trace.peak_w <= limit_w < found.provisioned.value:
        lines.append(
            f"{option('site_limit')} is kept by what this job draws: nameplates add up to "
            f"{fmt(found.provisioned.value, 'w', 3)}"
        )
    if found.need.energy_j:
        lines.append(
            "at the power that evens the step out, a battery with just the energy for it would be empty in "
            f"{fmt(found.need.empty_s, 's', 3)}: {found.binds} says how many it takes"
        )
    return tuple(lines)


def _emitted(found: Assessment, energy: Energy) -> list[str]:
    grid, day = found.grid, found.day
    lines = [
        f"in {grid.title} ({fmt(grid.carbon_kg_per_j, 'kg_per_j', 3)}) a day is {fmt(energy.day_j, 'j', 3)} and "
        f"{fmt(energy.day_kg, 'kg', 3)} of CO₂; its cleanest hours: "
        f"{_hours(day.cleanest_hours(4))}{', by a usual shape of a day' if day.is_estimate else ''}"
    ]
    if energy.run_j is not None and energy.run_s is not None and energy.run_kg is not None:
        lines.append(
            f"the run takes {fmt(energy.run_s, 's', 3)} of steps, {fmt(energy.run_j, 'j', 3)} and "
            f"{fmt(energy.run_kg, 'kg', 3)} of CO₂"
        )
    if energy.embodied_day_kg is not None:
        lines.append(
            f"manufacture of its boards adds {fmt(energy.embodied_day_kg, 'kg', 3)} of CO₂ a day, over "
            f"{counted(LIFE_YEARS, 'year')}"
        )
    return lines


def _hours(hours: tuple[int, ...]) -> str:
    return ", ".join(f"{hour}:00" for hour in hours)


def _next(scenario: Scenario, found: Assessment, step: Step, broken: tuple[Broken, ...]) -> tuple[str, ...]:
    laid: dict[str, Plain | None] = {}
    if step.is_searched and not found.num_idle:
        laid = {**layout_inputs(step.execution.layout), "global_batch": step.execution.job.global_batch}
    commands = []
    fixes: dict[str, Plain | None] = dict(fixing(broken))
    if "chips" in fixes and scenario.given("dp"):
        fixes["dp"] = None  # the chips left over
    if fixes:
        commands.append(follow(scenario, changes=fixes))
    elif not broken and not found.is_remedied and found.can_be_even:
        commands.append(follow(scenario, changes={"battery": found.num_even}))
    commands.append(follow(scenario, tail="-o power.html"))
    if laid:
        commands.append(follow(scenario, "simulate train", laid))
    return tuple(commands)
