"""What `show datapath` says, and what it refuses."""

from __future__ import annotations

from shlex import split

import pytest
from tests.answers.claims import unfounded
from tests.results import number

import datahall as dh
from datahall.answer import Answer, LineChart
from datahall.cli.main import run
from datahall.errors import DatahallError


def test_the_headline_says_whether_chips_are_starved_and_by_how_much() -> None:
    found = dh.show_datapath("unet3d", chips=36, storage=["lustre"], readers=16)
    assert found.verdict == "yes"
    assert found.headline.startswith(
        "lustre (1 appliance, shared) does not starve unet3d on 36 chips (h100-sxm)"
    )
    assert number(found, "chips_fed") == 38  # 110 GB/s over 90 % of 3.18; DDN submitted 36
    assert "It feeds 38 chips at 90 %." in found.binding
    assert unfounded(found) == []


def test_a_no_names_what_binds_and_the_cheapest_change_of_any_storage() -> None:
    found = dh.show_datapath("unet3d", chips=64, storage=["nvme", "parallel", "object"])
    assert found.verdict == "no"
    assert "parallel (1 scalable unit, shared) starves unet3d" in found.headline
    assert "with object, 64 readers for each chip, for 100 %" in found.binding
    assert "--storage object --readers 64" in found.next_commands[0]
    assert unfounded(found) == []


@pytest.mark.parametrize(
    "said",
    [
        {"workload": "unet3d", "chips": 64, "storage": ["nvme"]},
        {"workload": "unet3d", "chips": 64, "storage": ["object"]},
        {"workload": "cosmoflow", "chips": 64, "storage": ["object"], "prefetch_depth": 0, "stored_as": "files"},
        {"workload": "resnet50", "chips": 512, "storage": ["hdd"], "stored_as": "files"},
        {"workload": "resnet50", "chips": 64, "storage": ["lustre"], "checkpoint": "9 TB", "checkpoint_every": "60 s"},
        {"workload": "resnet50", "chips": 64, "storage": ["nvme"], "prepare": "10 ms", "cores": 16},
        {"workload": "resnet50", "chips": 64, "storage": ["sata-ssd"], "cache": "50 GB"},
        {"workload": "dlrm", "step": "64 ms", "chips": 4096, "storage": ["object"], "shuffle": "random"},
    ],
)  # fmt: skip
def test_the_next_command_does_what_was_said_of_it(said: dict[str, object]) -> None:
    before = dh.show_datapath(**said)  # type: ignore[arg-type]
    assert before.verdict == "no"
    enough = "The cheapest change that is enough" in before.binding
    code = run([*split(before.next_commands[0])[1:], "--quiet", "--format", "csv"])
    assert code == (0 if enough else 1)


def test_text_needs_nothing_and_checkpoints_write_more() -> None:
    found = dh.show_datapath("llama-3.1-405b", chips=16384, storage=["parallel"], units=4, replicas=10)
    assert number(found, "stall_fraction") == 0.0
    assert number(found, "needed_bytes_per_s") == pytest.approx(10.8e6, rel=0.06)
    assert number(found, "written_bytes_per_s") > 100 * number(found, "needed_bytes_per_s")
    titles = [table.title for table in found.tables]
    assert "checkpoints on the same storage" in titles
    assert "weights of 10 replicas at once" in titles


def test_the_chart_falls_where_a_store_is_outgrown() -> None:
    found = dh.show_datapath("resnet50", chips=64, storage=["nvme", "object"])
    (chart,) = found.charts
    assert isinstance(chart, LineChart)
    assert [one.name for one in chart.series] == ["nvme", "object"]
    assert chart.series[1].y[0] == 1.0
    assert chart.series[1].y[-1] < 0.9
    assert [mark.label for mark in chart.marks] == ["object feeds no more"]


def test_the_band_is_what_runs_had_of_their_data_sheets() -> None:
    """110 GB/s of which 82 to 102 % came through elsewhere, over 114 GB/s; far from the limit it is not felt."""
    near = dh.show_datapath("resnet50", chips=64, storage=["nvme"], chips_per_host=32)  # 7 of 6.55 GB/s
    assert number(near, "utilisation_low_fraction") == pytest.approx(7 * 0.822 / 6.552, rel=1e-3)
    assert number(near, "utilisation_high_fraction") == 1.0
    assert "(87.8 % to 100 %)" in near.headline
    far = dh.show_datapath("resnet50", chips=64, storage=["nvme"])
    assert number(far, "utilisation_low_fraction") == 1.0
    assert unfounded(near) == unfounded(far) == []


def price(answer: Answer) -> object:
    return answer.tables[0].records()[0]["month_usd"]


def test_a_price_is_kept_data_and_what_leaves_a_region() -> None:
    """ImageNet is 147 GB at 0.023 USD; 13.1 GB/s that leave for a month are 34 PB at 0.02 USD."""
    here = dh.show_datapath("resnet50", chips=64, storage=["object"], dataset="1 TB")
    away = dh.show_datapath(
        "resnet50", chips=64, storage=["object"], dataset="1 TB", away="60 ms", readers=64
    )
    assert price(here) == pytest.approx(23.0)
    assert price(away) == pytest.approx(23.0 + 13.1e9 * 365 / 12 * 86400 / 1e9 * 0.02, rel=0.01)
    assert price(dh.show_datapath("resnet50", chips=64, storage=["nvme"])) is None


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({"storage": ["tape"]}, "tape"),
        ({"workload": "resnet5"}, "resnet50"),
        ({"chips": 0}, "at least 1"),
        ({"host_nic": "0 GB/s"}, "at least"),
        ({"cache": "3 TB"}, "more than the 2 TB"),
        ({"dataset": "1 GB"}, "less than one step"),
        ({"chip": "b200"}, "nobody published"),
        ({"units": 0}, "at least 1"),
        ({"step": "0 s"}, "above 0"),
        ({"checkpoint": "-1 GB"}, "at least 0"),
        ({"checkpoint_every": "0 s"}, "above 0"),
        ({"utilisation": "120 %"}, "100 %"),
        ({"stored_as": "tar"}, "files, shards, columnar"),
        ({"stored_as": "shards", "columns": "50 %"}, "no columns"),
        ({"columns": "50 %"}, "stored_as"),
        ({"keeping": "pinned"}, "cache"),
        ({"prefetch_depth": -1}, "at least 0"),
        ({"sample": "0 B"}, "at least"),
    ],
)
def test_what_cannot_be_is_refused_with_a_reason(said: dict[str, object], words: str) -> None:
    with pytest.raises(DatahallError) as caught:
        dh.show_datapath(**{"workload": "resnet50", "chips": 64, **said})  # type: ignore[arg-type]
    assert words in f"{caught.value} {caught.value.hint}"


def test_an_edge_is_an_answer() -> None:
    """One chip, all of the data cached, nothing else: no division by nothing, no endless number."""
    for said in (
        {"chips": 1},
        {"chips": 1, "cache": "147 GB", "prefetch_depth": 0},
        {"chips": 64, "checkpoint": "900 PB", "checkpoint_every": "1 s"},
        {"chips": 64, "away": "60 s", "storage": ["object"]},
        {"chips": 64, "utilisation": "100 %"},
        {"chips": 1_000_000, "storage": ["hdd", "object"]},
    ):
        found = dh.show_datapath("resnet50", **said)  # type: ignore[arg-type]
        assert unfounded(found) == []
        assert 0.0 <= number(found, "utilisation_fraction") <= 1.0
