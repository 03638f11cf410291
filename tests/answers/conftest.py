"""The shipped catalogue, whatever the person who runs the tests keeps at home."""

import pytest

from datahall.catalog import Catalog


@pytest.fixture(scope="session")
def shelf() -> Catalog:
    return Catalog(user=False)
