"""`validate` in the shape that others read."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

SCORE = ["rows", "median_ape", "mean_ape", "p90_ape", "bias", "band_coverage"]
GEMM = "dtype,m,n,k,ms\nbf16,16,6144,4096,0.0135\nbf16,4096,6144,4096,0.32\n"


@pytest.fixture
def measured(tmp_path: Path) -> str:
    file = tmp_path / "gemm.csv"
    file.write_text(GEMM)
    return str(file)


def test_json_has_the_agreed_keys(datahall: Callable, measured: str) -> None:
    code, out, err = datahall("validate", "kernels", "--data", measured, "--format", "json")
    assert (code, err) == (0, "")
    card = json.loads(out)
    agreed = {
        "domain",
        "rows",
        "scored",
        "unsupported",
        "overall",
        "by_source",
        "by_hardware",
        "by_model",
        "worst",
    }
    assert agreed <= card.keys()
    assert (card["domain"], card["rows"], card["scored"]) == ("kernels", 2, 2)
    assert list(card["overall"]) == SCORE
    assert all(list(group) == SCORE for group in card["by_hardware"].values())


@pytest.mark.parametrize("form", ["table", "md", "html", "csv", "tree"])
def test_other_formats(datahall: Callable, measured: str, form: str) -> None:
    code, out, _ = datahall("validate", "kernels", "--data", measured, "--format", form)
    assert code == 0
    assert "h200" in out


def test_a_row_that_cannot_be_expressed_is_counted(datahall: Callable, tmp_path: Path) -> None:
    file = tmp_path / "gemm.csv"
    file.write_text(GEMM + "bf16,none,6144,4096,0.32\n")
    card = json.loads(datahall("validate", "kernels", "--data", str(file), "--json").out)
    assert (card["rows"], card["scored"]) == (3, 2)
    assert sum(reason["rows"] for reason in card["unsupported"]) == 1


@pytest.mark.parametrize(
    ("content", "words"),
    [("", "is empty"), ("dtype,m,n,k,ms\n", "no rows"), ("a,b\n1,2\n", "lacks")],
    ids=["empty", "header only", "other columns"],
)
def test_bad_files(datahall: Callable, tmp_path: Path, content: str, words: str) -> None:
    file = tmp_path / "x.csv"
    file.write_text(content)
    code, out, err = datahall("validate", "kernels", "--data", str(file))
    assert (code, out) == (2, "")
    assert words in err
