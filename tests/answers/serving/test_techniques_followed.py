"""What follows the techniques of a replica: a plan that may have it."""

from __future__ import annotations

import datahall as dh


def test_a_replica_that_is_cut_otherwise_than_by_tensors_is_left_to_the_plan() -> None:
    found = dh.show_techniques("deepseek-v3", chip="h200", rate=4, dp=8, ep=8, precision="fp8")
    (plan,) = (line for line in found.next_commands if line.startswith("datahall plan serve"))
    assert "--tp" not in plan
    alike = dh.show_techniques("llama-3.1-70b", chip="h200", rate=4, tp=2)
    assert any("--tp 2" in line for line in alike.next_commands)
