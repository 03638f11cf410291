"""Commands of a first look at the whole house, typed in this process, and figures asked from Python."""

import pytest
from tests.cli.conftest import Outcome, Run, _home, datahall

from datahall.catalog import Catalog

__all__ = ["Outcome", "Run", "_home", "datahall"]


@pytest.fixture(scope="session")
def shelf() -> Catalog:
    return Catalog(user=False)
