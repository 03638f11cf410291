"""Words of what a serving plan comes to over months: failures, spares, weights, power and energy."""

from __future__ import annotations

from datahall.answer import Cell, Column, Quantity, Table
from datahall.counted import counted
from datahall.datapath.sections.weights import WeightsNeed
from datahall.planner.serving.plan import ServingPlan
from datahall.power.service import ServicePower
from datahall.reliability.sections.upkeep import Upkeep
from datahall.units import fmt, short

Row = tuple[str, Quantity, str]


def operations_table(plan: ServingPlan) -> Table:
    """What the service takes beside the chips that serve."""
    upkeep, weights, power = plan.part(Upkeep), plan.part(WeightsNeed), plan.section(ServicePower)
    chip = plan.chosen.replica.chip.title
    return Table(
        title="in operation",
        columns=(Column("what"), Column("value"), Column("which is")),
        rows=(*_reliability(upkeep), _weights(weights), *(_power(power) if power is not None else ())),
        note=f"failures as often as in {upkeep.preset.title}, the usual restart and building"
        + ("" if power is not None else f"; what {chip} or its network may draw is not published"),
    )


def operations_results(plan: ServingPlan) -> dict[str, Cell]:
    """The same as numbers."""
    upkeep, weights, power = plan.part(Upkeep), plan.part(WeightsNeed), plan.section(ServicePower)
    found: dict[str, Cell] = {
        "lost_fraction": upkeep.lost_fraction,
        "mttf_s": upkeep.mttf_s,
        "back_s": upkeep.back_s,
        "num_more_replicas": upkeep.more_replicas.num,
        "num_spares": upkeep.spares.num,
        "weights_bytes": weights.replica_bytes,
        "load_s": weights.load_s,
    }
    if power is not None:
        found |= {
            "provisioned_w": power.provisioned.value,
            "site_w": power.drawn.value,
            "peak_w": power.peak.value,
            "rest_w": power.rest.value,
            "swing_w": power.swing_w,
            "token_j": power.token_j,
            "day_j": power.day_j,
            "day_kg": power.day_kg,
        }
    return found


def _reliability(upkeep: Upkeep) -> tuple[Row, ...]:
    lost = counted(upkeep.num_lost, "replica")
    every = (
        f"a node fails every {fmt(upkeep.mttf_s, 's', 3)} and takes {lost} for {fmt(upkeep.back_s, 's', 3)}"
    )
    more, spares = upkeep.more_replicas, upkeep.spares
    return (
        ("capacity lost to restarts", Quantity(upkeep.lost_fraction, "fraction"), every),
        (
            "replicas to add",
            Quantity(more.num, "count"),
            f"so that as many as are needed serve {_goal(upkeep)}",
        ),
        (
            "spare nodes",
            Quantity(spares.num, "count"),
            f"of {counted(upkeep.num_node_chips, 'chip')} each for those in repair, enough {_goal(upkeep)}",
        ),
    )


def _goal(upkeep: Upkeep) -> str:
    return f"{fmt(upkeep.enough_fraction, 'fraction')} of the time"


def _weights(weights: WeightsNeed) -> Row:
    where = "the drives of its hosts" if weights.on_drives else "storage that all chips share"
    rate = fmt(weights.chip_bytes_per_s, "bytes_per_s", 3)
    which = f"of a replica, read from {where} in {fmt(weights.load_s, 's', 3)}, {rate} a chip"
    return "weights", Quantity(weights.replica_bytes, "bytes"), which


def _power(power: ServicePower) -> tuple[Row, ...]:
    machines = power.machines
    return (
        (
            "power to be provisioned",
            Quantity(power.provisioned.value, "w"),
            f"nameplates of {counted(machines.num_servers, machines.server.form)}"
            f"{', network' if machines.network.value else ''} and storage, PUE {short(power.building.pue.value)}",
        ),
        ("power drawn", Quantity(power.drawn.value, "w"), f"at that load, {fmt(power.chip_w, 'w', 3)} for each chip"),
        ("peak", Quantity(power.peak.value, "w"), "with the headroom used up, or at that load"),
        ("swing", Quantity(power.swing_w, "w"), f"from there to rest, at {fmt(power.rest.value, 'w', 3)}"),
        (
            "energy of a day",
            Quantity(power.day_j, "j"),
            f"{fmt(power.token_j, 'j_per_token', 3)} of an answer; in {power.grid.title} "
            f"{fmt(power.day_kg, 'kg', 3)} of CO₂",
        ),
    )  # fmt: skip
