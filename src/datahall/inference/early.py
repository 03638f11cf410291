"""What is asked of a service, looked at before anything heavy is loaded: what cannot be is refused at once."""

from __future__ import annotations

from functools import partial

import msgspec

from datahall.catalog import Catalog
from datahall.catalog.entries.chip import Chip
from datahall.catalog.entries.model import Model
from datahall.errors import ScenarioError, UnsupportedError, option
from datahall.fabric.design.chips import is_built
from datahall.fabric.design.early import check_design
from datahall.fabric.design.topologies import topology_of_parts
from datahall.inference.engine.asked import deployment_of
from datahall.scenario.scenario import Attempts, Scenario
from datahall.scenario.sections.deployment import Deployment, split_roles
from datahall.scenario.sections.fabric import FabricDesign
from datahall.scenario.sections.fleet import Region
from datahall.scenario.sections.traffic import USUAL_DOCUMENT, Traffic
from datahall.scenario.words import FREE_DRAFT, OWN_LAYER
from datahall.workload.parameters import count_parameters
from datahall.workload.precision import Precision
from datahall.workload.traffic.room import check_room
from datahall.workload.traffic.shapes import Fixed

PADDED_FRACTION = 0.01  # of a vocabulary, by which models of one family differ: rows that no token has


def check_format(chip: Chip, precision: Precision) -> None:
    """Refuse a format that the chip cannot multiply in."""
    try:
        chip.peak(precision.operands)
    except UnsupportedError as error:
        error.field = "precision"
        raise


def check_draft(drafts: Model, model: Model) -> None:
    """Refuse a model to draft that has other tokens, or more weights to read for each."""
    hint = f"a smaller model of the same family, or {option('draft', FREE_DRAFT)}"
    if abs(drafts.vocab - model.vocab) > PADDED_FRACTION * model.vocab:
        raise ScenarioError(
            f"{drafts.name} has {drafts.vocab:,} tokens, {model.name} {model.vocab:,}: what one drafts the other does "
            "not know",
            field="draft",
            hint=hint,
        )
    own, other = count_parameters(model).total, count_parameters(drafts).total
    if other >= own:
        raise ScenarioError(
            f"{drafts.name} has {other / 1e9:,.3g}B parameters, {model.name} {own / 1e9:,.3g}B: drafting takes longer "
            "than it saves",
            field="draft",
            hint=hint,
        )


def check_drafts(scenario: Scenario) -> None:
    """The same of every deployment that names a model to draft."""
    for asked in scenario.all(Deployment):
        if asked.draft not in ("", OWN_LAYER, FREE_DRAFT):
            check_draft(scenario.catalog.model(asked.draft), scenario.model())


def check_pass(scenario: Scenario) -> None:
    """Refuse a pass in a format that was asked for and that its chip cannot multiply in.

    Of the usual format nobody needs to hear where the model does not fit either.
    """
    asked = scenario.one(Deployment)
    if scenario.given("precision"):
        check_format(scenario.catalog.chip(asked.chip), Precision.named(asked.precision))


def check_switched(topology: str, catalog: Catalog) -> None:
    """Refuse a fabric that wires the chips of replicas to their neighbours only."""
    if topology and _is_grid(topology, catalog):
        raise ScenarioError(
            "a replica whose chips are wired to their neighbours only is not modelled", field="on",
            hint=f"a switched fabric, e.g. {option('on', 'fat-tree')}; or leave {option('on')} out",
        )  # fmt: skip


def _is_grid(topology: str, catalog: Catalog) -> bool:
    """Whether a fabric wires chips to their neighbours only, whatever the number of them: it has sides."""
    kind = catalog.known_fabric(topology).topology if is_built(topology, catalog) else topology
    return "sides" in topology_of_parts(kind).uses


def check_replicas(scenario: Scenario) -> None:
    """Refuse replicas on chips that cannot multiply in their format or that the fabric does not join, or with no draft.

    Of a file the room that builds it does, together with all that only that room knows.
    """
    design, catalog = scenario.one(FabricDesign), scenario.catalog
    if scenario.document is not None:
        return
    check_switched(design.topology, catalog)
    check_drafts(scenario)
    for index, _ in enumerate(scenario.all(Deployment)):
        asked = deployment_of(scenario, index)
        pools = split_roles(asked.disaggregated) if asked.disaggregated else []
        for chip in (catalog.chip(name or asked.chip) for name in [one for _, _, one in pools] or [""]):
            check_format(chip, Precision.named(asked.precision))
            if design.topology:
                check_design(msgspec.structs.replace(design, chip=design.chip or chip.name), catalog)


def check_service(scenario: Scenario) -> None:
    """Refuse regions that nobody described, prompts that leave no room for an answer, and replicas that cannot run."""
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
    check_replicas(scenario)


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
