"""Replicas that several tests serve."""

from collections.abc import Callable

import msgspec
import pytest

from datahall.answers.ask import form_of
from datahall.catalog import Catalog
from datahall.catalog.document import parse
from datahall.inference.engine.engine import engine
from datahall.inference.engine.replica import Replica
from datahall.inference.fleet.service import Service, service_of
from datahall.scenario.read import read_document
from datahall.workload.precision import Precision


@pytest.fixture(scope="session")
def shelf() -> Catalog:
    return Catalog(user=False)


@pytest.fixture(scope="session")
def serve(shelf: Catalog) -> Callable[..., Replica]:
    """A replica of a model on a chip, by their names; its host costs nothing, so that steps are what the chip does."""

    def made(
        model: str,
        chip: str = "h100-sxm",
        *,
        precision: str = "bf16",
        engine_name: str = "vllm",
        **more: object,
    ) -> Replica:
        return Replica(
            model=shelf.model(model),
            chip=shelf.chip(chip),
            engine=msgspec.structs.replace(
                engine(engine_name), host_step_s=0.0, host_sequence_s=0.0, first_token_s=0.0
            ),
            precision=Precision.named(precision),
            **more,  # type: ignore[arg-type]
        )

    return made


@pytest.fixture(scope="session")
def read(shelf: Catalog) -> Callable[[str], Service]:
    """The service that the text of a scenario describes."""

    def service(text: str) -> Service:
        return service_of(read_document(form_of("simulate serve"), parse(text, "s.toml"), shelf))

    return service
