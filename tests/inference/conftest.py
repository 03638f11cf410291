"""Replicas that several tests serve."""

from collections.abc import Callable

import msgspec
import pytest
from tests.inference.closed_form_case import cache_of, linear, small

from datahall.answers.ask import form_of
from datahall.catalog import Catalog
from datahall.catalog.document import parse
from datahall.inference.closed_form import capacity
from datahall.inference.closed_form.steady_state import Curve, Load
from datahall.inference.engine.engine import engine
from datahall.inference.engine.replica import Replica
from datahall.inference.fleet.service import Service, service_of
from datahall.inference.step.price import StepPrice
from datahall.scenario.read import read_document
from datahall.scenario.sections.wanted.promise import Promise
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


@pytest.fixture
def on_curve(monkeypatch: pytest.MonkeyPatch) -> Callable[..., capacity.Held]:
    """What a replica carries whose curve and prices are given."""

    def made(found: Curve, slo: Promise, dp: int = 1) -> capacity.Held:
        price = StepPrice(
            table=linear()._replace(num_verified=3),
            tokens_per_step=2.0,
            stack="",
            level="measured",
            band=(1, 1),
        )
        monkeypatch.setattr(capacity, "price_steps", lambda _: price)
        monkeypatch.setattr(capacity, "kv_capacity", lambda _: cache_of(100))
        monkeypatch.setattr(capacity, "curve", lambda *_, **__: found)
        return capacity.held(msgspec.structs.replace(small(), dp=dp), Load(prompt=10.0, output=11.0), slo)

    return made
