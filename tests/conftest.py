"""Options and fixtures of the whole suite."""

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="write the golden outputs anew")


@pytest.fixture
def update(request: pytest.FixtureRequest) -> bool:
    """Whether golden outputs are to be written anew; read the difference before you keep it."""
    return bool(request.config.getoption("--update-golden"))
