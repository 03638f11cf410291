"""Options and fixtures of the whole suite."""

import pytest
from hypothesis import settings

# An example may take as long as a busy machine makes it: speed is measured in benchmarks, not asserted here.
settings.register_profile("any speed", deadline=None)
settings.load_profile("any speed")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="write the golden outputs anew")


@pytest.fixture
def update(request: pytest.FixtureRequest) -> bool:
    """Whether golden outputs are to be written anew; read the difference before you keep it."""
    return bool(request.config.getoption("--update-golden"))
