"""A plan of a service as it is asked for, refused before anything heavy is loaded."""

from __future__ import annotations

from datahall.catalog.entries.chip import Chip
from datahall.economics.early import check_buying
from datahall.economics.supply.limits import cannot_be_had, left_out
from datahall.errors import ScenarioError, UnsupportedError, option
from datahall.inference.closed_form.early import check_closed_form
from datahall.inference.early import check_drafts, check_format, check_switched
from datahall.inference.engine.asked import implied_chip
from datahall.planner.serving.refusal import Refused, nothing_serves
from datahall.scenario.scenario import Scenario
from datahall.scenario.sections.fabric import FabricDesign
from datahall.scenario.sections.wanted.candidates import Candidates
from datahall.workload.precision import Precision

USUAL_KINDS = ("h100-sxm", "h200-sxm", "b200-sxm", "mi300x")


def candidate_chips(scenario: Scenario) -> list[Chip]:
    """The kinds of chip to weigh: as was said, that of the fabric, or a few usual ones and those that can be had."""
    implied = implied_chip(scenario)
    asked = scenario.one(Candidates)
    names = asked.chips or dict.fromkeys((*USUAL_KINDS, *(name for name, _ in asked.available)))
    return [implied] if implied else [scenario.catalog.chip(name) for name in names]


def left_out_of(scenario: Scenario) -> dict[str, str]:
    """Those of them that cannot be had, each with why; where that is all of them, the answer is no."""
    chips = candidate_chips(scenario)
    why = left_out(scenario, chips)
    if len(why) == len(chips):
        raise cannot_be_had(scenario, why, "chips")
    return why


def check_serving_plan(scenario: Scenario) -> None:
    """Refuse a plan of what is no service, and terms of ways to buy that it does not weigh."""
    check_buying(scenario, "service")
    check_available(scenario)
    check_service(scenario)


def check_available(scenario: Scenario) -> None:
    """Refuse how many there are of a chip that is not weighed."""
    weighed = [chip.name for chip in candidate_chips(scenario)]
    for name, count in scenario.one(Candidates).available:
        if name not in weighed:
            raise ScenarioError(
                f"{count:,} {name} can be had, which is not weighed: {', '.join(weighed)}",
                field="available",
                hint=f"{option('chips', ','.join((*weighed, name)))}, or leave {name} out",
            )


def check_service(scenario: Scenario) -> None:
    """Refuse what has no closed form, what cannot draft, and formats that none of the chips can multiply in."""
    check_closed_form(scenario)
    if scenario.document is not None:
        return
    check_switched(scenario.one(FabricDesign).topology, scenario.catalog)
    check_drafts(scenario)
    without = left_out_of(scenario)
    chips, refused = [chip for chip in candidate_chips(scenario) if chip.name not in without], []
    for chip, precision in ((chip, name) for chip in chips for name in scenario.one(Candidates).precision):
        try:
            check_format(chip, Precision.named(precision))
        except UnsupportedError as error:
            what = f"{chip.name}, {precision}"
            refused.append(Refused(what=what, why=error.message, hint=error.hint, chip=chip.name, runs=False))
        else:
            return
    raise nothing_serves(scenario.model(), chips, refused)
