"""The error tree, and what an error says."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from datahall import errors
from datahall.errors import (
    CatalogError,
    DatahallError,
    DocumentError,
    InfeasibleError,
    Problem,
    ScenarioError,
    UnitError,
    UnknownNameError,
    UnsupportedError,
    nearest,
)

KNOWN = ["h100-sxm", "h100-pcie", "h200-sxm", "a100-sxm-80gb", "tpu-v4", "mi300x"]
CLASSES = {
    name: one
    for name, one in vars(errors).items()
    if isinstance(one, type) and issubclass(one, DatahallError)
}


def drawn() -> dict[str, str]:
    """Class to parent, as the docstring draws them: three characters to the right is one level down."""
    parents: list[str] = []
    found: dict[str, str] = {}
    for line in (errors.__doc__ or "").splitlines():
        match = re.match(r"    ((?:│  |   )*(?:[├└]─ )?)(\w+Error)\b", line)
        if match is None:
            continue
        depth = len(match[1]) // 3
        parents = [*parents[:depth], match[2]]
        found[match[2]] = parents[depth - 1] if depth else ""
    return found


def test_the_tree_in_the_docstring_is_the_tree() -> None:
    real = {
        name: next((base.__name__ for base in one.__mro__[1:] if base in CLASSES.values()), "")
        for name, one in CLASSES.items()
    }
    assert drawn() == real


def test_every_error_has_a_code_of_its_own_and_an_exit_code() -> None:
    codes = [one.code for one in CLASSES.values()]
    assert len(set(codes)) == len(codes)
    assert all(re.fullmatch(r"[a-z]+(-[a-z]+)*", code) for code in codes)
    assert {one.__name__: one.exit_code for one in CLASSES.values() if one.exit_code != 2} == {
        "InfeasibleError": 1
    }


@pytest.mark.parametrize(
    ("one", "kind"), [(UnitError, ValueError), (ScenarioError, ValueError), (CatalogError, LookupError)]
)
def test_errors_are_also_what_python_calls_them(one: type, kind: type) -> None:
    assert issubclass(one, kind)


def test_an_error_says_what_where_and_what_to_do() -> None:
    error = ScenarioError("batch is 0", where="plan.toml:3", hint="write batch = 1")
    assert error.lines() == ["error[scenario]: batch is 0", "  --> plan.toml:3", "  write batch = 1"]
    assert str(error) == "\n".join(error.lines())
    assert error.args == ("batch is 0",)
    assert InfeasibleError("no").lines() == ["error[infeasible]: no"]


def test_a_file_lists_all_its_problems() -> None:
    problems = [Problem("a.toml:1", "no value", "write one"), Problem("a.toml:9", "too many")]
    error = DocumentError("a.toml", problems)
    assert error.lines() == [
        "error[document]: a.toml: 2 problems",
        "  a.toml:1: no value; write one",
        "  a.toml:9: too many",
    ]
    assert DocumentError("a.toml", problems[:1]).message == "a.toml: 1 problem"


def test_an_unknown_name_carries_the_nearest_ones() -> None:
    error = UnknownNameError("chip", "h100-sxm5", KNOWN)
    assert isinstance(error, CatalogError)
    assert error.message == '"h100-sxm5" is not a chip in the catalogue'
    assert error.nearest[0] == "h100-sxm"
    assert error.hint.startswith("did you mean: h100-sxm, ")
    assert error.hint.endswith("all of them: datahall catalog chips")


def test_an_unknown_name_that_is_like_nothing_guesses_nothing() -> None:
    error = UnknownNameError("chip", "zzzzzz", KNOWN, hint="look around")
    assert error.nearest == ()
    assert error.hint == "look around"


def test_a_known_thing_that_cannot_do_it_is_a_catalogue_error() -> None:
    assert issubclass(UnsupportedError, CatalogError)
    assert UnsupportedError("no FP8").lines() == ["error[unsupported]: no FP8"]


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("h100", "h100-sxm"), ("H100_SXM", "h100-sxm"), ("h10-sxm", "h100-sxm"), ("a100", "a100-sxm-80gb"),
        ("mi300", "mi300x"), ("tpuv4", "tpu-v4"), ("h200", "h200-sxm"),
    ],
)  # fmt: skip
def test_the_nearest_name_is_the_one_that_was_meant(typed: str, meant: str) -> None:
    found = nearest(typed, KNOWN)
    assert meant in found[:2]
    assert len(found) <= 3


@given(st.text(max_size=12), st.lists(st.text(min_size=1, max_size=12), max_size=8), st.integers(0, 5))
def test_names_near_anything_are_known_names_each_once(name: str, known: list[str], count: int) -> None:
    found = nearest(name, known, count)
    assert len(found) <= count
    assert len(set(found)) == len(found)
    assert set(found) <= set(known)


@given(st.lists(st.text("abcdefgh123-", min_size=3, max_size=12), min_size=1, max_size=8), st.data())
def test_a_name_is_nearest_to_itself(known: list[str], data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(known))
    letters = [one.replace("-", "") for one in known]
    if name.replace("-", "") and letters.count(name.replace("-", "")) == known.count(name):
        assert nearest(name, known, 1) == (name,)
