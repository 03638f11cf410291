"""Bare kernels: their machine code is kept by itself, equals their source, and runs without numba."""

from __future__ import annotations

import os
import subprocess
import sys
import zlib
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import datahall
from datahall.compiled import Bare
from datahall.machine_code import Code, address_of, compile_code, kept

SCALE = 3
ROW = np.dtype([("count", "<i8"), ("time_s", "<f8")], align=True)
ENV = dict(os.environ)  # before the folder of kept code is set apart
SOURCE = str(Path(datahall.__file__).parents[1])


class Table(NamedTuple):
    rows: np.ndarray
    grid: np.ndarray


def weigh(table: Table, by: float, most: int) -> float:
    """Every kind of argument, read and written."""
    total = 0.0
    for index in range(min(most, table.rows.size)):
        row = table.rows[index]
        row["count"] += SCALE
        total += row["time_s"] * by
        for column in range(table.grid.shape[1]):
            table.grid[index, column] += total / (row["count"] + column)
    return total


def fill(out: np.ndarray, value: float) -> None:
    for index in range(out.size):
        out[index] = value


def fill_rows(out: np.ndarray, value: float) -> None:
    for index in range(out.shape[0]):
        out[index, 0] = value


def first(out: np.ndarray) -> int:
    return int(out[0])


def divide(amount: int, by: int) -> float:
    return amount / by


def doubled(values: np.ndarray) -> float:
    return float(np.zeros(values.size).sum()) + values[0]


def talk(amount: int) -> None:
    print(amount)


@pytest.fixture(scope="module", autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory) -> Any:
    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("code")
        patch.setenv("NUMBA_CACHE_DIR", str(folder))
        yield folder / "datahall"


def table(num_rows: int, num_columns: int, seed: int) -> Table:
    draw = np.random.default_rng(seed)
    rows = np.zeros(num_rows, ROW)
    rows["count"], rows["time_s"] = draw.integers(1, 100, num_rows), draw.random(num_rows)
    return Table(rows, draw.random((num_rows, num_columns)))


kernel = Bare(weigh)


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(0, 5), st.integers(1, 4), st.integers(-2, 6), st.floats(-1e6, 1e6), st.integers(0, 9))
def test_machine_code_does_what_its_source_does(
    rows: int, columns: int, most: int, by: float, seed: int
) -> None:
    ours, theirs = table(rows, columns, seed), table(rows, columns, seed)
    assert kernel(ours, by, most) == kernel.interpreted(theirs, by, most)
    assert ours.rows.tobytes() == theirs.rows.tobytes()
    assert ours.grid.tobytes() == theirs.grid.tobytes()


def test_a_kernel_returns_nothing_or_a_number() -> None:
    out = np.zeros(3)
    assert Bare(fill)(out, 7.5) is None
    assert out.tolist() == [7.5] * 3
    assert Bare(first)(np.array([4, 5])) == 4
    assert Bare(first)(np.array([4.0, 5.0])) == 4  # another kind of array: other code


def test_an_error_comes_out_as_it_is() -> None:
    with pytest.raises(ZeroDivisionError):
        Bare(divide)(1, 0)


@pytest.mark.parametrize("wrong", [np.zeros((4, 4)).T, np.arange(8.0)[::2], "text", True])
def test_arguments_that_have_no_words_are_refused(wrong: object) -> None:
    with pytest.raises(TypeError):
        Bare(first)(wrong)  # type: ignore[arg-type]


def test_a_kernel_that_makes_arrays_is_refused() -> None:
    with pytest.raises(Exception, match="zeros"):
        Bare(doubled)(np.ones(2))


def test_a_kernel_that_calls_python_is_refused() -> None:
    with pytest.raises(TypeError, match=r"talk makes arrays or calls Python: .*Py"):
        Bare(talk)(1)


def test_a_broken_file_is_made_anew(cache: Path) -> None:
    Bare(divide)(6, 3)
    (path,) = cache.glob("divide-*")
    whole = path.read_bytes()
    other = zlib.crc32(b"another form").to_bytes(4, "big") + b"another form"
    for broken in (b"", whole[:100], whole[:-1] + bytes([whole[-1] ^ 1]), other):
        path.write_bytes(broken)
        assert kept(path) is None
        assert Bare(divide)(6, 3) == 2.0
        assert kept(path) is not None


def test_code_goes_stale_with_a_number_that_it_names(monkeypatch: pytest.MonkeyPatch) -> None:
    before = Bare(weigh).stamp
    monkeypatch.setitem(weigh.__globals__, "SCALE", SCALE + 1)
    assert Bare(weigh).stamp != before


def test_a_later_process_runs_kept_code_without_numba(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(
        "import sys\nimport numpy as np\nfrom datahall.compiled import Bare\n"
        "def last(values):\n    return values[values.size - 1]\n"
        "print(Bare(last)(np.array([1.5, 2.5])), 'numba' in sys.modules)\n"
    )
    env = {**os.environ, "PYTHONPATH": SOURCE, "NUMBA_CACHE_DIR": str(tmp_path)}
    said = [
        subprocess.run(
            [sys.executable, "script.py"], cwd=tmp_path, env=env, check=True, capture_output=True, text=True
        ).stdout.split()
        for _ in range(2)
    ]
    assert said == [["2.5", "True"], ["2.5", "False"]]


PLANS = """
import sys
import datahall as dh
dh.plan_train("llama-3.1-8b", tokens="1T", chips=256)
dh.plan_serve("llama-3.1-8b", rate=4, chips="h100-sxm")
print("numba" in sys.modules)
"""


def test_plans_need_no_compiler_once_their_code_is_kept() -> None:
    said = [
        subprocess.run(
            [sys.executable, "-c", PLANS],
            env={**ENV, "PYTHONPATH": SOURCE},
            check=True,
            capture_output=True,
            text=True,
        ).stdout.split()
        for _ in range(2)
    ]
    assert said[1] == ["False"]


@pytest.mark.parametrize("more_words", [None, 1])
def test_where_the_compiler_lays_code_out_otherwise_it_runs_it_itself(
    monkeypatch: pytest.MonkeyPatch, more_words: int | None
) -> None:
    """Something of its inside is gone, or arguments are other words."""

    def otherwise(function: Callable[..., object], arguments: tuple[Any, ...], num_words: int) -> Code:
        if more_words is None:
            raise AttributeError("no attribute _get_compiled_object")
        return compile_code(function, arguments, num_words + more_words)

    monkeypatch.setattr("datahall.compiled.kept", lambda _: None)
    monkeypatch.setattr("datahall.compiled.compile_code", otherwise)
    out = np.zeros(3)
    kernel = Bare(fill)
    for value in (2.5, 4.0):
        kernel(out, value)
        assert out.tolist() == [value] * 3


def test_a_full_disk_is_no_reason_to_stop(monkeypatch: pytest.MonkeyPatch, cache: Path) -> None:
    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    before = set(cache.iterdir())
    monkeypatch.setattr(Path, "write_bytes", full)
    out = np.zeros((3, 1))  # of a kind that no other test compiles
    Bare(fill_rows)(out, 1.5)
    assert out.tolist() == [[1.5]] * 3
    assert set(cache.iterdir()) == before


def test_kernels_without_a_file_are_told_apart() -> None:
    made: list[Any] = []
    for by in (2, 3):
        names: dict[str, Any] = {}
        exec(f"def times(value):\n    return value * {by}\n", names)
        made.append(Bare(names["times"])(5))
    assert made == [10, 15]


def _dot(columns: tuple[np.ndarray, np.ndarray], start: int, scale: float) -> float:
    total = 0.0
    for place in range(start, columns[0].size):
        total += columns[0][place] * columns[1][place]
    columns[0][start] += 1.0
    return scale * total


def test_a_function_bound_to_arrays_sees_what_is_written_to_them() -> None:
    """Whatever runs it: called anew, bound, or by numba itself, each call leaves the arrays as the last one did."""
    found = []
    for way in ("called", "bound", "numba"):
        kernel = Bare(_dot)
        kernel._by_numba = way == "numba"
        columns = (np.array([1.0, 2.0, 3.0]), np.array([10.0, 20.0, 30.0]))
        call = kernel.bound(columns) if way != "called" else partial(kernel, columns)
        found.append([call(0, 2.0), call(1, 1.0), call(0, 1.0), columns[0].tolist()])
    assert found == 3 * [[280.0, 130.0, 170.0, [3.0, 3.0, 3.0]]]


@pytest.mark.parametrize(
    "array",
    [
        np.zeros((3, 4)),
        np.zeros(0),
        np.arange(10)[3:7],
        np.zeros(2, [("a", np.int64), ("b", np.float64)]),
        np.float64(1)[None],
    ],
    ids=["plain", "empty", "part", "records", "scalar"],
)
def test_the_address_of_an_array_is_that_which_numpy_says(array: np.ndarray) -> None:
    assert address_of(array) == array.ctypes.data
