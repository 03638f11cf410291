"""The failures that somebody asks about: whose rates, on which nodes, of what age."""

from __future__ import annotations

from math import ceil

from datahall.catalog import Catalog
from datahall.catalog.entries.chip import Chip
from datahall.catalog.entries.failures import FailurePreset
from datahall.catalog.entries.server import Server
from datahall.fabric.design.parts import usual_server
from datahall.reliability.process import FailureProcess, Nodes, process_of, shock
from datahall.scenario.sections.operations.failures import USUAL_RATES, FailureRates


def preset_of(asked: FailureRates, chip: Chip, catalog: Catalog) -> FailurePreset:
    """Whose rates: as it says, those of the chip, of a chip of its family, or of the largest count that there is.

    What whoever asks counted goes before what was published.
    """
    if asked.like:
        return catalog.failure_preset(asked.like)
    presets = sorted(catalog.failure_presets(), key=lambda one: not catalog.is_own("failures", one.name))
    same = [one for one in presets if catalog.name_of("chip", one.chip) == chip.name]
    alike = [one for one in presets if catalog.chip(one.chip).family == chip.family]
    return next(iter((*same, *alike)), catalog.failure_preset(USUAL_RATES))


def gpu_fleets(catalog: Catalog) -> tuple[FailurePreset, ...]:
    """Those that others are predicted by: counted by their owners, on nodes of eight GPUs."""
    return tuple(one for one in catalog.failure_presets() if one.is_fleet)


def process_asked(
    asked: FailureRates, chip: Chip, catalog: Catalog, num_chips: int, *, server: Server | None = None
) -> FailureProcess:
    """The failures of so many chips in the machine they are sold in, whole nodes of it.

    Nodes that stand in one rack as the scale-up domain is sold share its power and its coolant.
    """
    home = server or usual_server(catalog, chip)
    node = min(home.num_host_chips, num_chips)
    num_nodes = ceil(num_chips / node)
    shared = min(asked.shock_nodes, num_nodes)
    return process_of(
        preset_of(asked, chip, catalog),
        catalog,
        num_nodes,
        Nodes(num_chips=node, num_in_rack=home.num_hosts if home.form == "rack" else 1, age_s=asked.age_s),
        rate_per_node_day=asked.failure_rate_per_node_day,
        job_rate_per_day=asked.job_rate_per_day,
        shocks=[shock(asked.shock_rate_per_day, shared, catalog)] if asked.shock_rate_per_day else [],
    )
