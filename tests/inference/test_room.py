"""What a chip has for a model, as a figure, and what a model is short of."""

from __future__ import annotations

import pytest

from datahall.breakdown import false_nodes
from datahall.catalog import Catalog
from datahall.catalog.entries.chip import Chip
from datahall.inference.engine.build import replica_of
from datahall.inference.engine.replica import replica_system
from datahall.inference.memory.figure import shortage_figure
from datahall.inference.memory.fit import on_group
from datahall.inference.memory.kv_pool import runtime_bytes
from datahall.inference.memory.room import seen_figure
from datahall.scenario.sections.deployment import Deployment

CATALOG = Catalog(user=False)


@pytest.mark.parametrize("chip", CATALOG.chips(), ids=lambda chip: chip.name)
def test_the_figure_is_what_a_program_sees(chip: Chip) -> None:
    figure = seen_figure(chip)
    assert figure.value == pytest.approx(runtime_bytes(chip))
    assert false_nodes(figure) == []
    assert not [node for _, node in figure.walk() if "by hand" in node.note]


@pytest.mark.parametrize("engine", ["vllm", "sglang", "trtllm"])
@pytest.mark.parametrize(("name", "tp"), [("llama-3.1-8b", 1), ("llama-3.1-70b", 1), ("llama-3.1-70b", 4)])
def test_what_is_missing_decides_what_is_held(engine: str, name: str, tp: int) -> None:
    """One sequence more than it holds lacks memory, what it holds does not, and weights alone may."""
    asked = Deployment(chip="h100-sxm", engine=engine)
    fit = on_group(replica_of(asked, CATALOG.model(name), CATALOG), tp, 4096)
    for num_sequences in (1, 10, max(1, fit.num_sequences), fit.num_sequences + 1, 100_000):
        figure = shortage_figure(fit, num_sequences)
        assert false_nodes(figure) == []
        assert figure.value == pytest.approx(fit.missing_bytes(num_sequences))
        assert (figure.value <= 0) == fit.holds(num_sequences)
    assert fit.held_bytes(3) == pytest.approx(fit.weight_bytes + 3 * fit.sequence_bytes)


@pytest.mark.parametrize(
    ("chip", "num_domain"), [("l40s", 8), ("h100-sxm", 8), ("gh200", 1), ("gb200", 72), ("h100-pcie", 8)]
)
def test_a_group_leaves_the_domain_of_the_machine_that_it_stands_on(chip: str, num_domain: int) -> None:
    """Eight cards of a server share its bus, whether or not they have links of their own."""
    alone = replica_of(Deployment(chip=CATALOG.chip(chip).name), CATALOG.model("llama-3.1-8b"), CATALOG)
    assert replica_system(alone).num_domain == num_domain
    for tp in (1, 2, 4, 8, 16):
        assert on_group(alone, tp, 4096).leaves_domain == (tp > num_domain)
