"""Chips of the shipped catalogue, whatever the user's own folder holds."""

from __future__ import annotations

import pytest

from datahall.catalog import Catalog
from datahall.catalog.entries.chip import Chip


@pytest.fixture(scope="session")
def catalog() -> Catalog:
    return Catalog(user=False)


@pytest.fixture(scope="session")
def h200(catalog: Catalog) -> Chip:
    return catalog.chip("h200-sxm")
