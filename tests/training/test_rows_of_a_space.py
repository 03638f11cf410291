"""What a layout costs does not depend on the layouts that are weighed beside it."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest
from tests.training.hand import H100, JOB, KIT, ROUTED

from datahall.cluster.cluster import cluster_of
from datahall.training.layout.columns import Space
from datahall.training.layout.space import Options, layout_space
from datahall.training.memory.peak import peak_memory
from datahall.training.step.step import Job, step_times

NUM_CHIPS = 128
MANY = Options(micro_batch=(1, 2), recompute=("none", "full"), shard=(0, 8), offload=((), ("optimizer",)))


@pytest.mark.parametrize("job", [JOB, ROUTED], ids=["dense", "experts"])
def test_a_row_of_many_is_the_layout_alone(job: Job) -> None:
    cluster, space = cluster_of(H100, NUM_CHIPS), layout_space(job, NUM_CHIPS, MANY)
    together = msgspec.structs.asdict(step_times(job, cluster, space, KIT))
    draw = np.random.default_rng(0)
    for zero in range(4):
        rows = np.flatnonzero(space.zero == zero)
        assert rows.size
        for index in draw.choice(rows, 12, replace=False).tolist():
            alone = msgspec.structs.asdict(step_times(job, cluster, Space.of(space.row(index)), KIT))
            for name, column in together.items():
                assert float(column[index]) == pytest.approx(float(alone[name][0]), rel=1e-9, abs=1e-15), name


@pytest.mark.parametrize("job", [JOB, ROUTED], ids=["dense", "experts"])
def test_memory_of_a_row_of_many_is_that_of_the_layout_alone(job: Job) -> None:
    space, books = layout_space(job, NUM_CHIPS, MANY), job.books(KIT)
    together = peak_memory(job, H100, space, books).total_bytes
    for index in np.random.default_rng(1).choice(len(space), 30, replace=False).tolist():
        alone = peak_memory(job, H100, Space.of(space.row(index)), books).total_bytes
        assert float(together[index]) == pytest.approx(float(alone[0]), rel=1e-9)
