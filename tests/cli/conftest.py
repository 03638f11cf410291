"""The command line in this process, with a home of its own."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from datahall.catalog import load
from datahall.cli.main import run


class Outcome(NamedTuple):
    """What a command left behind."""

    code: int
    out: str
    err: str


Run = Callable[..., Outcome]


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "home"))
    for name in ("DATAHALL_CATALOG", "NO_COLOR", "COLUMNS", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    load.cache_clear()
    yield
    load.cache_clear()


@pytest.fixture
def datahall(capsys: pytest.CaptureFixture[str]) -> Run:
    def call(*words: str) -> Outcome:
        code = run(words)
        return Outcome(code, *capsys.readouterr())

    return call
