"""What is asked of a service, looked at before anything heavy is loaded: what cannot be is refused at once."""

from __future__ import annotations

from functools import partial

from datahall.errors import ScenarioError, option
from datahall.scenario.scenario import Attempts, Scenario
from datahall.scenario.sections.deployment import Deployment
from datahall.scenario.sections.fleet import Region
from datahall.scenario.sections.traffic import USUAL_DOCUMENT, Traffic
from datahall.workload.traffic.room import check_room
from datahall.workload.traffic.shapes import Fixed


def check_service(scenario: Scenario) -> None:
    """Refuse regions that nobody has described, and prompts that leave no room for an answer."""
    attempts, regions = Attempts(scenario), tuple(region.name for region in scenario.all(Region))
    for index, deployment in enumerate(scenario.all(Deployment)):
        attempts.make(
            partial(region_number, deployment.region, regions, "in_region"),
            index=index,
            section="deployment",
        )
    for index, traffic in enumerate(scenario.all(Traffic)):
        for name in traffic.region or ({"": 1.0} if regions else {}):
            where = partial(region_number, name, regions, "from_region")
            attempts.make(where, index=index, section="traffic")
        attempts.make(partial(_check_prompt, scenario, traffic), index=index, section="traffic")
    attempts.finish()


def check_prompts(scenario: Scenario) -> None:
    """Refuse prompts that leave no room for an answer; of lengths that vary only what comes before them is known."""
    for traffic in scenario.all(Traffic):
        _check_prompt(scenario, traffic)


def _check_prompt(scenario: Scenario, traffic: Traffic) -> None:
    if traffic.trace:
        return
    own = 1
    if isinstance(traffic.isl, Fixed) and not (traffic.spread_ratio or traffic.opening or traffic.preset):
        own = traffic.isl.tokens
    context = scenario.model().max_context
    document = (traffic.document or USUAL_DOCUMENT) if traffic.documents else 0
    check_room(
        min((deployment.max_context or context for deployment in scenario.all(Deployment)), default=context),
        isl=own,
        system=traffic.system or 0,
        document=document * (traffic.retrieved or 1),
        varied=own == 1,
    )


def region_number(name: str, regions: tuple[str, ...], field: str) -> int:
    """The number of a region; where there are none, nobody may name one."""
    if name in regions:
        return regions.index(name)
    if not name and not regions:
        return 0
    if not name:
        raise ScenarioError(
            f"{option(field)} is missing beside regions", field=field, hint=f"one of {', '.join(regions)}"
        )
    known = f"one of {', '.join(regions)}" if regions else f"describe it: {option('region', f'name={name}')}"
    raise ScenarioError(f'"{name}" is not a region', field=field, hint=known)
