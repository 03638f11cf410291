"""Words of what a plan says of power: of a training run, of a service, and where nobody knows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from datahall.answer import Cell, Quantity
from datahall.answers.section import Row, Words
from datahall.counted import counted
from datahall.units import fmt, short

if TYPE_CHECKING:
    from datahall.breakdown import Breakdown
    from datahall.power.sections.run import RunPower
    from datahall.power.sections.service import ServicePower
    from datahall.power.sections.unknown import UnknownPower
    from datahall.power.site import Building, Machines


def _quantity(figure: Breakdown) -> Quantity:
    return Quantity(figure.value, figure.unit)


def _provisioned(figure: Breakdown, machines: Machines, building: Building) -> Row:
    what = f"nameplates of {counted(machines.num_servers, machines.server.form)}"
    network = ", network" if machines.network.value else ""
    pue = f"PUE {short(building.pue.value)}"
    spare = machines.num_spare_chips
    what += f" ({counted(spare, 'chip')} of them idle)" if spare else ""
    return "power to be provisioned", _quantity(figure), f"{what}{network} and storage, {pue}"


def _run(power: RunPower) -> tuple[Row, ...]:
    site = power.site
    carbon = f"in {site.grid.title} {fmt(power.carbon.value, 'kg', 3)} of CO₂"
    return (
        _provisioned(site.provisioned, site.machines, site.building),
        ("power drawn", _quantity(power.drawn), f"{fmt(site.chip_site_w, 'w', 3)} for each chip"),
        ("peak", _quantity(power.peak), "of a step"),
        ("swing", _quantity(power.swing), f"up and down in each step of {fmt(site.execution.step_s, 's', 3)}"),
        *_idle(power),
        (
            "energy of the steps",
            _quantity(power.energy),
            f"{fmt(power.token.value, 'j_per_token', 3)}; {carbon}",
        ),
    )  # fmt: skip


def _idle(power: RunPower) -> tuple[Row, ...]:
    """What chips that stay idle add to the site."""
    if power.idle is None:
        return ()
    drawn, plates = counted(power.idle.num, "idle chip"), fmt(power.idle.provisioned_w, "w", 3)
    which = f"of what is drawn, by {drawn}; {plates} of what is to be provisioned"
    return (("power of idle chips", Quantity(power.idle.site_w, "w"), which),)


def _run_results(power: RunPower) -> dict[str, Cell]:
    """Under the names that `show power` has for them."""
    return {
        "provisioned_w": power.site.provisioned.value,
        "site_w": power.drawn.value,
        **(
            {"idle_provisioned_w": power.idle.provisioned_w, "idle_w": power.idle.site_w}
            if power.idle
            else {}
        ),
        "peak_w": power.peak.value,
        "swing_w": power.swing.value,
        "token_j": power.token.value,
        "run_j": power.energy.value,
        "run_kg": power.carbon.value,
    }


def _run_note(_: RunPower) -> str:
    return "power while it works"


def _service(power: ServicePower) -> tuple[Row, ...]:
    each = f"at that load, {fmt(power.chip_w, 'w', 3)} for each chip"
    carbon = f"in {power.grid.title} {fmt(power.carbon.value, 'kg', 3)} of CO₂"
    return (
        _provisioned(power.provisioned, power.machines, power.building),
        ("power drawn", _quantity(power.drawn), each),
        ("peak", _quantity(power.peak), "with the headroom used up, or at that load"),
        ("swing", _quantity(power.swing), f"from there to rest, at {fmt(power.rest.value, 'w', 3)}"),
        (
            "energy of a day",
            _quantity(power.energy),
            f"{fmt(power.token.value, 'j_per_token', 3)} of an answer; {carbon}",
        ),
    )


def _service_results(power: ServicePower) -> dict[str, Cell]:
    return {
        "provisioned_w": power.provisioned.value,
        "site_w": power.drawn.value,
        "peak_w": power.peak.value,
        "rest_w": power.rest.value,
        "swing_w": power.swing.value,
        "token_j": power.token.value,
        "day_j": power.energy.value,
        "day_kg": power.carbon.value,
    }


def _unknown(power: UnknownPower) -> str:
    return f"what it draws is not known: {power.why}"


RUN = Words(_run, _run_results, _run_note)
SERVICE = Words(_service, _service_results)
UNKNOWN = Words(lambda _: (), lambda _: {}, _unknown)
