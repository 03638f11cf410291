"""What was said of a data path and changes nothing."""

from __future__ import annotations

from collections.abc import Sequence

from datahall.datapath.verdict import Verdict
from datahall.scenario.idle import idle_together
from datahall.scenario.scenario import Scenario


def idle_memory(scenario: Scenario, rows: Sequence[Verdict]) -> tuple[str, ...]:
    """That a host's memory does nothing where nothing is cached, nor could be in place of another change."""
    if scenario.given("cache") or any(row.remedies for row in rows):
        return ()
    return idle_together(scenario, ["host_memory"], "nothing is cached, and nothing has to be mended")
