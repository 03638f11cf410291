"""The shipped catalogue, and services from the text of a scenario."""

from collections.abc import Callable

import pytest

from datahall.answers.ask import form_of
from datahall.catalog import Catalog
from datahall.catalog.document import parse
from datahall.errors import DocumentError
from datahall.inference.fleet.service import Service, service_of
from datahall.scenario.read import read_document


@pytest.fixture(scope="session")
def shelf() -> Catalog:
    return Catalog(user=False)


@pytest.fixture(scope="session")
def read(shelf: Catalog) -> Callable[[str], Service]:
    """The service that a text describes, as a file `s.toml` would."""

    def service(text: str) -> Service:
        form = form_of("simulate serve")
        return service_of(read_document(form, parse(text, "s.toml"), shelf))

    return service


@pytest.fixture(scope="session")
def problems(read: Callable[[str], Service]) -> Callable[[str], list[str]]:
    """What is wrong with a text, line by line, as its file would be told."""

    def wrong(text: str) -> list[str]:
        with pytest.raises(DocumentError) as caught:
            read(text)
        caught.value.spell = form_of("simulate serve").key
        return [line.strip() for line in caught.value.lines()[1:]]

    return wrong
