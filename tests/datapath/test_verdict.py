"""What is said of stores side by side: whether they hold the data, and which change of which is enough."""

from __future__ import annotations

import pytest

from datahall.answers.ask import form_of
from datahall.catalog import Catalog
from datahall.datapath.verdict import Verdict, cheapest, judged
from datahall.planner.datapath import asked_of
from datahall.scenario.read import read_names

CATALOG = Catalog(user=False)
RESNET = {"workload": "resnet50", "chips": 64, "chip": "h100-sxm"}


def rows(*storage: str, **more: object) -> tuple[Verdict, ...]:
    said = {**RESNET, "storage": list(storage), **more}
    return judged(asked_of(read_names(form_of("show datapath"), said, CATALOG)))


@pytest.mark.parametrize(("units", "holds"), [(1, False), (2, True)])
def test_units_hold_as_much_as_all_of_them(units: int, holds: bool) -> None:
    """A drive of 30.72 TB holds no 60 TB, and two of them do."""
    (row,) = rows("nvme", dataset="60TB", units=units)
    assert row.holds == holds


def test_no_store_has_to_be_mended_where_one_needs_nothing() -> None:
    """Drives keep the chips at work, one disk for all of them does not, and more disks would."""
    drives, disk = rows("nvme", "hdd")
    assert drives.keeps
    assert not disk.keeps
    assert cheapest((disk,)) is disk
    assert cheapest((drives, disk)) is None


def test_a_data_set_is_made_as_large_as_the_rules_of_the_benchmark_ask() -> None:
    """500 steps of so many chips and their batch, where it is not as large by itself."""
    said = {**RESNET, "chips": 65_536, "storage": ["nvme"]}
    job = asked_of(read_names(form_of("show datapath"), said, CATALOG)).job
    assert job.dataset_bytes == pytest.approx(500 * 65_536 * job.batch * job.sample_bytes)
