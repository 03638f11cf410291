"""What was asked of a working set and changes nothing."""

from __future__ import annotations

from datahall.scenario.idle import idle_together
from datahall.scenario.scenario import Scenario
from datahall.scenario.words import TIERS
from datahall.silicon.hierarchy import Scan, Step, level_words


def idle_in_scan(scenario: Scenario, ladder: tuple[Step, ...], found: Scan | None) -> tuple[str, ...]:
    """Notes on where to keep, and how to fetch, what fits without."""
    if found is None:
        return ()
    why = f"the working set fits in {level_words(found.level)}"
    unused = ["offload"] if found.level not in TIERS else []
    unused += ["prefetch"] if found.level == ladder[0].name else []
    return idle_together(scenario, unused, why)
