"""Kernels: one source, run as it is or compiled; the machine code is kept where it can be."""

from __future__ import annotations

import logging
import os
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest

import datahall
from datahall import compiled
from datahall.compiled import Kernel, cache_folder


def triangle(values: np.ndarray) -> float:
    total = 0.0
    for index in range(values.size):
        total += values[index] * (index + 1)
    return total


VALUES = np.array([0.1, 0.2, 0.3])
FACTOR = 2.0


@pytest.fixture
def temporary(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the system keeps what nobody needs tomorrow."""
    folder = tmp_path_factory.mktemp("temporary")
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    return tmp_path


def test_compiled_and_interpreted_are_one_function(cache: Path) -> None:
    kernel = Kernel(triangle)
    assert kernel(VALUES) == kernel.interpreted(VALUES) == triangle(VALUES)
    assert any(cache.rglob("*triangle*.nbi"))


def test_the_first_compilation_says_so_once(cache: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "datahall")
    kernel = Kernel(triangle, compile_s=7.0)
    kernel(VALUES)
    kernel(VALUES)
    kernel(VALUES[:2])
    (said,) = (record.getMessage() for record in caplog.records if record.name == "datahall")
    assert said == "compiling triangle for this machine, once: about 7 s"
    assert any(cache.iterdir())


def test_a_later_process_finds_the_machine_code_and_says_nothing(
    cache: Path, caplog: pytest.LogCaptureFixture
) -> None:
    Kernel(triangle)(VALUES)
    kept = sorted(cache.rglob("*.nb*"))
    caplog.set_level(logging.INFO, "datahall")
    caplog.clear()
    Kernel(triangle)(VALUES)
    assert not [record for record in caplog.records if record.name == "datahall"]
    assert sorted(cache.rglob("*.nb*")) == kept


def test_interpreting_loads_no_compiler() -> None:
    code = (
        "import sys\nfrom datahall.compiled import Kernel\n"
        "def double(x): return 2 * x\n"
        "assert Kernel(double).interpreted(2) == 4\n"
        "assert 'numba' not in sys.modules"
    )
    source = str(Path(datahall.__file__).parents[1])
    subprocess.run([sys.executable, "-c", code], check=True, env={**os.environ, "PYTHONPATH": source})


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"NUMBA_CACHE_DIR": "numba", "XDG_CACHE_HOME": "xdg"}, "numba/datahall"),
        ({"XDG_CACHE_HOME": "xdg"}, "xdg/datahall"),
        ({}, "home/.cache/datahall"),
    ],
)
def test_machine_code_goes_where_the_user_keeps_caches(
    settings: dict[str, str], expected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("NUMBA_CACHE_DIR", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for name, folder in settings.items():
        monkeypatch.setenv(name, str(tmp_path / folder))
    assert cache_folder() == tmp_path / expected
    assert cache_folder().is_dir()


def test_a_cache_that_cannot_be_made_falls_back_to_a_private_folder(
    temporary: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_the_way = tmp_path / "a file"
    in_the_way.write_text("")
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(in_the_way))
    assert_private(cache_folder(), within=temporary)


def test_a_read_only_cache_falls_back_to_a_private_folder(
    temporary: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    allowed = os.access
    monkeypatch.setattr(
        os, "access", lambda path, mode: not Path(path).is_relative_to(tmp_path) and allowed(path, mode)
    )
    assert_private(cache_folder(), within=temporary)


def test_the_private_folder_is_found_again_unless_somebody_else_made_it(
    temporary: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_the_way = tmp_path / "a file"
    in_the_way.write_text("")
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(in_the_way))
    first = cache_folder()
    compiled._private_folder.cache_clear()
    assert cache_folder() == first
    first.rmdir()
    (tmp_path / "theirs").mkdir()
    first.symlink_to(tmp_path / "theirs")
    compiled._private_folder.cache_clear()
    assert cache_folder() != first
    assert_private(cache_folder(), within=temporary)


def scaled(value: float) -> float:
    return value * FACTOR


def test_code_goes_stale_with_a_number_that_it_names(monkeypatch: pytest.MonkeyPatch) -> None:
    """It may have come from another file, which numba does not look at."""
    before = Kernel(scaled).stamp
    monkeypatch.setitem(scaled.__globals__, "FACTOR", 5.0)
    assert Kernel(scaled).stamp != before


def assert_private(folder: Path, *, within: Path) -> None:
    assert folder.is_dir()
    assert folder.is_relative_to(within)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert os.access(folder, os.W_OK)


@pytest.mark.usefixtures("temporary")
def test_a_kernel_runs_where_nothing_can_be_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    in_the_way = tmp_path / "a file"
    in_the_way.write_text("")
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(in_the_way))
    assert Kernel(triangle)(VALUES) == triangle(VALUES)


def test_code_is_not_kept_under_the_name_of_files_that_changed_after_it_was_loaded(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the next process would run the old code, and believe that it is that of the new file."""
    written_s = Path(__file__).stat().st_mtime
    monkeypatch.setattr(compiled, "BEGAN_S", written_s - 1.0)
    assert not Kernel(triangle).is_as_written
    assert Kernel(triangle)(VALUES) == triangle(VALUES)
    assert not [*cache.rglob("*triangle*.nbi")]
    monkeypatch.setattr(compiled, "BEGAN_S", written_s + 1.0)
    assert Kernel(triangle).is_as_written


def test_a_file_from_a_machine_with_another_clock_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled, "BEGAN_S", 0.0)
    monkeypatch.setattr(compiled.time, "time", lambda: 1.0)
    assert Kernel(triangle).is_as_written
