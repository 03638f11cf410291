"""A catalogue without the layers of whoever runs the tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from datahall.catalog import Catalog


@pytest.fixture(scope="session")
def catalog() -> Catalog:
    """The shipped data alone."""
    return Catalog(user=False)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty user folder of one's own."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("DATAHALL_CATALOG", raising=False)
    return tmp_path / "home" / "datahall" / "catalog"
