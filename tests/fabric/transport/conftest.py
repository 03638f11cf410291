"""Fixtures of the tests of transports."""

import pytest

from datahall.catalog import Catalog


@pytest.fixture(scope="session")
def shelf() -> Catalog:
    return Catalog(user=False)
