"""Commands answer on standard output, talk on standard error, and end with the right code."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from datahall.answers.verbs import VERBS
from datahall.report.wire import decode

CHIP = """
[chip.my-chip]
source = { title = "my bench", date = "2026-03", kind = "measured" }
title = "My chip"
vendor = "Me"
family = "hopper"
memory = "64 GB"
memory_bandwidth = "2 TB/s"
[chip.my-chip.peak]
bf16 = "500 TFLOP/s"
"""

QUESTIONS = [
    ("show", "chip", "h100-sxm"),
    ("show", "model", "llama-3.1-8b"),
    ("show", "hierarchy", "h100-sxm"),
    ("catalog", "chips"),
    ("catalog", "models"),
    ("catalog", "links"),
    ("catalog", "servers"),
    ("catalog", "prices"),
    ("catalog", "api-prices", "gpt-4o"),
    ("catalog", "search", "nvlink"),
    ("explain",),
    ("explain", "MFU"),
]


@pytest.mark.parametrize("words", QUESTIONS, ids=" ".join)
@pytest.mark.parametrize("form", ["table", "tree", "json", "csv", "md", "html"])
def test_every_question_in_every_format(datahall: Callable, words: tuple[str, ...], form: str) -> None:
    code, out, err = datahall(*words, "--format", form, "--quiet")
    assert (code, err) == (0, "")
    assert out
    if form == "json":
        assert decode(out).kind == json.loads(out)["kind"]
    if form == "table":
        assert max(map(len, out.splitlines())) <= 100


def test_json_flag_is_format_json(datahall: Callable) -> None:
    assert (
        datahall("show", "chip", "h200", "--json").out
        == datahall("show", "chip", "h200", "--format", "json").out
    )


def test_a_false_claim_is_a_no(datahall: Callable) -> None:
    assert datahall("show", "chip", "h100-sxm", "--claim", "peak.fp8=1979 TFLOP/s").code == 0
    code, out, err = datahall("show", "chip", "h100-sxm", "--claim", "peak.fp8=3958 TFLOP/s")
    assert (code, err) == (1, "")
    assert out.startswith("Sparse: 3,958 TFLOP/s is with 2:4 sparsity")


def test_explain_runs_the_question_and_shows_the_whole_chain(datahall: Callable) -> None:
    code, out, _ = datahall("explain", "show", "model", "llama-3.1-8b", "--context", "4096")
    assert code == 0
    assert "the chain behind it" in out
    assert "cut by tensor parallelism" in out
    assert "[1] config.json" in out
    assert out.index("context = 4,096") < out.index("sources")


def test_explain_writes_a_page_that_begins_with_the_chain(datahall: Callable) -> None:
    out = datahall("explain", "show", "model", "llama-3.1-8b", "--format", "html").out
    assert "how it adds up" not in out
    assert out.index("the chain behind it") < out.index("<table")
    assert out.count("<details open") > 1


def test_explain_passes_on_a_no_and_an_error(datahall: Callable) -> None:
    assert datahall("explain", "catalog", "search", "abacus").code == 1
    assert datahall("explain", "show", "chip", "h10").code == 2


def test_the_ending_of_a_file_chooses_the_format(datahall: Callable, tmp_path: Path) -> None:
    target = tmp_path / "chip.html"
    code, out, err = datahall("show", "chip", "h100-sxm", "-o", str(target))
    assert (code, out, err) == (0, "", f"datahall: wrote {target}\n")
    assert target.read_text().startswith("<!doctype html>")
    assert datahall("show", "chip", "h100-sxm", "-o", str(target), "--quiet").err == ""


def test_a_no_that_goes_to_a_file_is_said_beside_it(datahall: Callable, tmp_path: Path) -> None:
    asked = ("simulate", "train", "llama-3.1-70b", "--chips", "64")
    headline = json.loads(datahall(*asked, "--json").out)["headline"]
    assert "does not fit" in headline
    for target in (tmp_path / "step.html", tmp_path / "step.json"):
        code, out, err = datahall(*asked, "-o", str(target))
        assert (code, out, err) == (1, "", f"datahall: wrote {target}\ndatahall: {headline}\n")
        assert datahall(*asked, "-o", str(target), "--quiet") == (1, "", "")
    assert datahall(*asked).err == ""


def test_a_format_beside_an_ending_that_asks_for_another_is_refused(
    datahall: Callable, tmp_path: Path
) -> None:
    for said in (("--format", "json"), ("--json",)):
        code, out, err = datahall("show", "chip", "h100-sxm", "-o", str(tmp_path / "x.html"), *said)
        assert (code, out) == (2, "")
        assert f"{' '.join(said)} beside -o" in err
        assert not (tmp_path / "x.html").exists()
    assert datahall("show", "chip", "h100-sxm", "-o", str(tmp_path / "x.json"), "--json").code == 0


def test_csv_says_that_there_is_more(datahall: Callable) -> None:
    assert "first of 4 tables" in datahall("show", "model", "llama-3.1-8b", "--format", "csv").err


def test_add_check_and_show_a_chip_of_ones_own(datahall: Callable, tmp_path: Path) -> None:
    file = tmp_path / "my-chip.toml"
    file.write_text(CHIP)
    assert datahall("check", str(file)).code == 0
    assert datahall("show", "chip", "my-chip").code == 2
    assert datahall("catalog", "add", str(file)).code == 0
    assert "My chip: 64 GB at 2 TB/s" in datahall("show", "chip", "my-chip").out
    code, _, err = datahall("catalog", "add", str(file))
    assert code == 2
    assert "--replace" in err
    assert datahall("catalog", "add", str(file), "--replace").code == 0


def test_a_folder_of_ones_own_lies_over_the_shipped(datahall: Callable, tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "my-chip.toml").write_text(CHIP)
    assert datahall("show", "chip", "my-chip", "--catalog", str(folder)).code == 0


def test_check_lists_every_problem_and_ends_with_1(datahall: Callable, tmp_path: Path) -> None:
    file = tmp_path / "bad.toml"
    file.write_text('[chip.x]\nmemory = "80 XB"\ntitel = "a"\n')
    code, out, err = datahall("check", str(file), "--json")
    assert (code, err) == (1, "")
    rows = json.loads(out)["tables"][0]["rows"]
    assert {row["where"] for row in rows} >= {f"{file}:2", f"{file}:3"}


def test_python_says_the_same_as_the_command_line(datahall: Callable) -> None:
    import datahall as dh
    from datahall.report.wire import encode

    assert datahall("show", "chip", "h100-sxm", "--json").out == encode(dh.show_chip("h100-sxm"))
    assert datahall("show", "model", "llama-3.1-8b", "--json").out == encode(dh.show_model("llama-3.1-8b"))


def test_every_public_name_can_be_loaded() -> None:
    import datahall as dh

    assert all(hasattr(dh, name) for name in dh.__all__)
    assert {verb.function for verb in VERBS} <= set(dh.__all__)
    with pytest.raises(AttributeError, match="show_chop"):
        dh.show_chop  # type: ignore[attr-defined]  # noqa: B018
