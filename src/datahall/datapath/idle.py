"""Which inputs a data path was given for nothing: they are of a part that it has not."""

from __future__ import annotations

from collections.abc import Sequence

from datahall.catalog.entries.model import Model
from datahall.catalog.entries.stored.storage import Storage
from datahall.errors import ScenarioError, option
from datahall.scenario.idle import does_nothing, is_changed
from datahall.scenario.scenario import Scenario
from datahall.scenario.sections.operations.datapath import DataPath


def check_used(scenario: Scenario, model: Model | None, tiers: Sequence[Storage]) -> None:
    """Refuse inputs of a model where a data set is read, of checkpoints or a way to storage that there are not."""
    asked, idle = scenario.one(DataPath), dict[str, tuple[str, str]]()
    if model is None:
        why = f"{asked.workload} is a data set", "a model that is trained on text"
        idle |= {"mfu": why, "replicas": why}
    if not asked.checkpoint_bytes and (model is None or asked.checkpoint_bytes is not None):
        idle["checkpoint_every"] = "there are no checkpoints", f"add {option('checkpoint', '1TB')}"
    if not any(one.is_shared for one in tiers):
        why = "all storage here is in the hosts", "storage that hosts share, e.g. parallel or object"
        idle |= {"away": why, "host_nic": why}
    for name, (reason, instead) in idle.items():
        if is_changed(scenario, name):
            hint = f"leave it out, or {instead}"
            raise ScenarioError(does_nothing(name, reason), field=name, hint=hint)
