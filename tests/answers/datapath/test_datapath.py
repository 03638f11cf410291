"""What `show datapath` says, and what it refuses."""

from __future__ import annotations

import random
import re
from pathlib import Path
from shlex import split

import pytest
from tests.answers.claims import unfounded
from tests.results import number

import datahall as dh
from datahall.answer import Answer, LineChart
from datahall.cli.main import run
from datahall.errors import DatahallError, ScenarioError, UnsupportedError

CHIP = """
[chip.mystery]
source = { title = "t", date = "2026-01" }
title = "Mystery"
vendor = "Me"
family = "hopper"
memory = "80 GB"
memory_bandwidth = "3 TB/s"
"""


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
    assert number(found, "needed_bytes_per_s") == pytest.approx(10.8e6, rel=0.1)
    assert number(found, "written_bytes_per_s") > 100 * number(found, "needed_bytes_per_s")
    titles = [table.title for table in found.tables]
    assert "checkpoints on the same storage" in titles
    assert "weights of 10 replicas at once" in titles


@pytest.mark.parametrize(
    ("model", "chips", "chip"),
    [("llama-3.1-405b", 16384, "h100-sxm"), ("llama-3.1-8b", 64, "h200"), ("deepseek-v3", 2048, "b200")],
)
def test_a_checkpoint_and_a_step_are_those_of_the_training_verbs(model: str, chips: int, chip: str) -> None:
    """14 bytes a parameter of the state that is trained with, and the step of the fastest layout, in each verb."""
    path = dh.show_datapath(model, chips=chips, chip=chip, storage=["parallel"])
    saved = dh.show_checkpoint(model, chips=chips, chip=chip)
    assert number(path, "checkpoint_bytes") == number(saved, "checkpoint_bytes")
    run = dh.simulate_run(model, chips=chips, chip=chip, days=1, runs=2)
    tokens_per_s = number(run, "tokens_per_s")
    assert number(path, "needed_bytes_per_s") == pytest.approx(4 * tokens_per_s, rel=1e-9)
    assert unfounded(path) == []


def test_a_speed_that_is_said_stands_in_place_of_the_fastest_layout() -> None:
    """16,384 H100 at 40 % of 989 TFLOP/s, 2.5 TFLOP a token: 2.6 million tokens of four bytes a second."""
    said = dh.show_datapath("llama-3.1-405b", chips=16384, storage=["parallel"], mfu="40%")
    assert number(said, "needed_bytes_per_s") == pytest.approx(4 * 16384 * 0.4 * 989e12 / 2.5e12, rel=0.03)
    assert unfounded(said) == []
    half = dh.show_datapath("llama-3.1-405b", chips=16384, storage=["parallel"], mfu="20%")
    assert number(half, "needed_bytes_per_s") == pytest.approx(number(said, "needed_bytes_per_s") / 2)
    with pytest.raises(DatahallError, match="in none of") as caught:
        dh.show_datapath("llama-3.1-405b", chips=8)
    assert 'mfu="40%"' in str(caught.value)
    assert dh.show_datapath("llama-3.1-405b", chips=8, mfu="40%").verdict == "yes"


def test_a_host_is_what_is_sold() -> None:
    """An NVL72 is 18 trays of four, each with its drives; a DGX eight chips."""
    drives = dh.show_datapath("llama-3.1-8b", chips=72, chip="gb200", storage=["nvme"], mfu="40%")
    assert drives.figure is not None
    assert (
        drives.figure.at(
            "what comes through of what is needed",
            "what comes through",
            "bandwidth",
            "of storage",
            "units of all hosts",
        ).value
        == 18
    )
    eight = dh.show_datapath("resnet50", chips=72, storage=["nvme"], chips_per_host=8)
    assert number(eight, "available_bytes_per_s") == number(
        dh.show_datapath("resnet50", chips=72, storage=["nvme"]), "available_bytes_per_s"
    )


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ({"away": "50 ms"}, "away does nothing here: all storage here is in the hosts"),
        ({"host_nic": "1 kB/s"}, "host_nic does nothing here: all storage here is in the hosts"),
        ({"mfu": "10 %"}, "mfu does nothing here: resnet50 is a data set"),
        ({"replicas": 8}, "replicas does nothing here: resnet50 is a data set"),
        ({"checkpoint_every": "1 s"}, "checkpoint_every does nothing here: there are no checkpoints"),
        ({"cores": 1}, "cores does nothing here: it needs prepare"),
    ],
)
def test_options_of_what_is_not_there_are_refused(said: dict[str, object], why: str) -> None:
    with pytest.raises(DatahallError, match=why):
        dh.show_datapath("resnet50", chips=64, storage=["nvme"], **said)  # type: ignore[arg-type]


def test_memory_that_nothing_uses_is_said_to_do_nothing() -> None:
    def idle(**said: object) -> bool:
        notes = dh.show_datapath("resnet50", chips=64, storage=["nvme"], **said).notes  # type: ignore[arg-type]
        return any(note.startswith("host_memory does nothing here") for note in notes)

    assert idle(host_memory="1 GB")
    assert not idle(host_memory="1 TB", cache="1 GB")
    assert not idle(host_memory="1 TB", chips_per_host=64), "it may mend what is too slow"
    assert not idle()


def test_one_is_said_in_the_singular_and_memory_is_no_unit() -> None:
    ahead = dh.show_datapath("resnet50", chips=8, storage=["nvme"], prefetch_depth=0)
    told = " ".join(str(row) for table in ahead.tables for row in table.rows)
    assert "1 batches" not in told
    assert "1 batch ready ahead" in told
    assert dh.show_datapath("resnet50", chips=8, storage=["page-cache"]).headline.startswith(
        "page-cache (memory of each host) "
    )


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


def test_what_the_cache_answers_does_not_leave_the_region() -> None:
    """Half of 1 TB is kept in memory for good: half of what is delivered leaves, and half is paid for."""
    said = {"chips": 64, "storage": ["object"], "dataset": "1 TB", "away": "60 ms", "readers": 64}
    whole, half = (
        dh.show_datapath("resnet50", **said, **more)  # type: ignore[arg-type]
        for more in ({}, {"cache": "500 GB", "keeping": "pinned"})
    )
    assert number(half, "delivered_bytes_per_s") == pytest.approx(
        number(whole, "delivered_bytes_per_s"), rel=0.01
    )
    assert price(half) - 23.0 == pytest.approx((price(whole) - 23.0) / 2, rel=0.01)  # type: ignore[operator]


def test_all_units_together_hold_the_data() -> None:
    def lacks_room(units: int) -> bool:
        notes = dh.show_datapath("resnet50", chips=64, storage=["nvme"], units=units, dataset="50 TB").notes
        return any("does not hold all" in note for note in notes)

    assert lacks_room(1)
    assert not lacks_room(16)


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
        {"chips": 64, "storage": ["page-cache"], "utilisation": "100 %"},
        {"chips": 64, "utilisation": "100 %"},
        {"chips": 1_000_000, "storage": ["hdd", "object"]},
    ):
        found = dh.show_datapath("resnet50", **said)  # type: ignore[arg-type]
        assert unfounded(found) == []
        assert 0.0 <= number(found, "utilisation_fraction") <= 1.0


def test_a_host_has_the_memory_that_it_is_sold_with() -> None:
    """512 GB in a DGX V100: no cache is larger, nor is one offered."""
    said = {
        "workload": "unet3d",
        "chips": 64,
        "chip": "v100-sxm2-32gb",
        "step": "1s",
        "storage": ["sata-ssd"],
    }
    with pytest.raises(ScenarioError, match="a cache of 1 TB is more than the 512 GB"):
        dh.show_datapath(**said, cache="1TB")
    answer = dh.show_datapath(**said)
    assert answer.inputs["host_memory_bytes"] == 512e9
    offered = [
        int(found.replace(",", ""))
        for table in answer.tables
        for row in table.rows
        for cell in row
        for found in re.findall(r"([\d,]+) GB of each host's memory", str(cell))
    ]
    assert offered
    assert max(offered) <= 512
    assert dh.show_datapath(**said, host_memory="2TB", cache="1TB").results


def test_a_cache_where_nobody_knows_the_memory_needs_it_said(tmp_path: Path) -> None:
    (tmp_path / "chip.toml").write_text(CHIP)
    shelf = dh.Catalog(extra=[str(tmp_path)], user=False)
    said = {"workload": "unet3d", "chips": 64, "chip": "mystery", "step": "1s", "catalog": shelf}
    with pytest.raises(UnsupportedError, match="how much memory"):
        dh.show_datapath(**said, cache="1GB")
    assert dh.show_datapath(**said, cache="1GB", host_memory="2GB").results
    assert "memory" not in str(dh.show_datapath(**said).tables)


@pytest.mark.parametrize("seed", range(6))
def test_what_comes_next_can_be_typed(seed: int) -> None:
    """Of questions drawn from the words that there are; a no is an answer."""
    draw = random.Random(seed)
    said = {
        "workload": draw.choice(["unet3d", "resnet50", "cosmoflow"]),
        "chips": draw.choice([8, 64, 1024]),
        "chip": draw.choice(["h100-sxm", "v100-sxm2-32gb", "gb200"]),
        "step": draw.choice(["50ms", "1s"]),
        "storage": draw.sample(["nvme", "hdd", "lustre", "object", "parallel"], 2),
        "prefetch_depth": draw.choice([0, 2]),
        **draw.choice([{}, {"cache": "10GB"}, {"host_memory": "64GB"}, {"checkpoint": "1TB"}]),
    }
    for command in dh.show_datapath(**said).next_commands:
        if "validate" not in command:
            assert run([*split(command)[1:], "--quiet", "--format", "json"]) in (0, 1), command


def test_what_helps_most_where_nothing_is_enough_is_followed_by_nothing_better() -> None:
    """With what the answer names, nothing that it could have named brings more: little changes count in the end."""
    first = dh.show_datapath("unet3d", chips=64, storage=["hdd"])
    assert "Nothing is enough; what helps most" in first.binding
    mended = dh.show_datapath(
        "unet3d", chips=64, storage=["hdd"], units=32, readers=8, cache="2000 GB", keeping="pinned"
    )
    reached = f"{number(mended, 'utilisation_fraction'):.1%}".replace("%", " %")
    assert first.binding.endswith(f"for {reached}.")
    assert "what helps most" not in mended.binding


def test_more_chips_than_anybody_may_ask_for_are_a_number() -> None:
    binding = dh.show_datapath("llama-3.1-405b", chips=16_384, storage=["parallel"]).binding
    assert "more chips than there are" not in binding
    assert "It feeds 1,048,576 chips and more at 90 %" in binding
