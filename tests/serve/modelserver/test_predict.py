"""The lab's model server: the same fields, types and status codes as its plain FastAPI form."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from tests.serve.modelserver.models import Held, ask, function, linear, opener, run

from datahall.serve.http import Request, answer_of
from datahall.serve.modelserver.app import ModelServer
from datahall.serve.modelserver.batcher import Batching
from datahall.serve.modelserver.shelf import Shelf


async def serving(opened: Any, batching: Batching | None = None) -> tuple[ModelServer, Shelf]:
    shelf = Shelf()
    await shelf.load("m", opened, batching=batching)
    return ModelServer(shelf, "m", "1"), shelf


def test_a_prediction_and_the_health_that_follows(tmp_path: Path) -> None:
    async def main() -> None:
        server, shelf = await serving(opener(linear(tmp_path)))
        assert await ask(server, "/health") == (
            200,
            {"status": "healthy", "model_loaded": True, "avg_latency_ms": 0.0},
        )
        status, said = await ask(server, "/predict", {"features": [1, 0.5, 2.0]})
        assert status == 200
        assert said.keys() == {"prediction", "latency_ms"}
        assert said["prediction"] == [1 * 0 + 0.5 * 2 + 2 * 4, 1 * 1 + 0.5 * 3 + 2 * 5]
        assert isinstance(said["latency_ms"], float)
        assert said["latency_ms"] > 0
        _, health = await ask(server, "/health")
        assert health["avg_latency_ms"] == said["latency_ms"]  # of one answer
        await shelf.close()

    run(main)


def test_before_the_model_is_loaded_it_lives_and_is_not_ready() -> None:
    async def main() -> None:
        server = ModelServer(Shelf(), "m", "1")
        assert await ask(server, "/health/live") == (200, {"status": "live"})
        assert await ask(server, "/health/ready") == (503, {"status": "loading"})
        assert (await ask(server, "/health"))[1]["model_loaded"] is False
        assert (await ask(server, "/predict", {"features": [1]}))[0] == 503

    run(main)


@pytest.mark.parametrize(
    ("body", "loc", "kind"),
    [
        (b"{}", ["body", "features"], "missing"),
        (b'{"features": 1}', ["body", "features"], "type_error"),
        (b'{"features": [1, "a"]}', ["body", "features", 1], "type_error"),
        (b"[]", ["body"], "type_error"),
        (b'{"features": [1', ["body"], "json_invalid"),
        (b"", ["body"], "json_invalid"),
        (b"\xff\xfe", ["body"], "json_invalid"),
        (b"[" * 100_000, ["body"], "type_error"),
        (b'{"features": [1, 2]}', ["body", "features"], "value_error"),  # the model has three
        (b'{"features": []}', ["body", "features"], "value_error"),
        (b'{"features": [1e300, 1, 1]}', ["body", "features"], "value_error"),
        (b'{"features": [1e999, 1, 1]}', ["body", "features", 0], "type_error"),
    ],
)
def test_a_body_that_cannot_be_read_is_422_and_says_where(
    tmp_path: Path, body: bytes, loc: list[object], kind: str
) -> None:
    async def main() -> None:
        server, shelf = await serving(opener(linear(tmp_path)))
        status, said = await ask(server, "/predict", body)
        assert status == 422
        (problem,) = said["detail"]
        assert problem["loc"] == loc
        assert problem["type"] == kind
        assert problem["msg"]
        await shelf.close()

    run(main)


def test_a_model_that_fails_is_500_for_its_own_request_alone() -> None:
    def picky(features: Any) -> Any:
        if (features < 0).any():
            raise ValueError("negative")
        return features

    async def main() -> None:
        server, shelf = await serving(function(picky, 1))
        asked = [ask(server, "/predict", {"features": [value]}) for value in (1.0, -1.0, 2.0)]
        one, broken, two = await asyncio.gather(*asked)
        assert one[1]["prediction"] == [1.0]
        assert two[1]["prediction"] == [2.0]
        assert broken == (500, {"detail": "negative"})
        await shelf.close()

    run(main)


def test_what_is_no_finite_number_is_no_prediction() -> None:
    async def main() -> None:
        server, shelf = await serving(
            function(lambda features: features / 0.0 if features.any() else features, 1)
        )
        with pytest.warns(RuntimeWarning, match="divide by zero"):
            assert (await ask(server, "/predict", {"features": [1.0]}))[0] == 500
        await shelf.close()

    run(main)


def test_a_full_queue_is_503_with_the_time_to_come_again() -> None:
    model = Held()

    async def main() -> None:
        server, shelf = await serving(function(model, 1), Batching(most_rows=1, most_queued=1))
        first = asyncio.create_task(ask(server, "/predict", {"features": [1]}))
        await model.entered(1)
        second = asyncio.create_task(ask(server, "/predict", {"features": [2]}))
        await asyncio.sleep(0)
        refused = await answer_of(server, Request("POST", "/predict", body=b'{"features": [3]}'))
        assert refused.status == 503
        assert int(refused.headers["retry-after"]) >= 1
        model.door.set()
        assert (await first)[1]["prediction"] == [1.0]
        assert (await second)[1]["prediction"] == [2.0]
        await shelf.close()

    run(main)


def test_a_client_that_leaves_is_not_computed_for() -> None:
    model = Held()

    async def main() -> None:
        server, shelf = await serving(function(model, 1), Batching(most_rows=1))
        first = asyncio.create_task(ask(server, "/predict", {"features": [1]}))
        await model.entered(1)
        leaving = asyncio.create_task(ask(server, "/predict", {"features": [2]}))
        await asyncio.sleep(0.01)
        leaving.cancel()
        await asyncio.wait([leaving])
        model.door.set()
        await first
        await shelf.close()
        assert len(model.sizes) == 1

    run(main)


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [("GET", "/predict", 405), ("POST", "/health", 405), ("GET", "/nothing", 404)],
)
def test_other_paths_and_methods(method: str, path: str, status: int) -> None:
    async def main() -> None:
        assert (await ask(ModelServer(Shelf(), "m", "1"), path, b"", method))[0] == status

    run(main)


def test_what_a_batcher_counts_is_there_for_prometheus(tmp_path: Path) -> None:
    async def main() -> None:
        server, shelf = await serving(opener(linear(tmp_path)))
        for _ in range(3):
            await ask(server, "/predict", {"features": [1, 2, 3]})
        response = await answer_of(server, Request("GET", "/metrics"))
        text = (await response.read()).decode()
        labels = 'model="m",version="1"'
        assert f'datahall_model_batches_total{{{labels},reason="idle"}} 3' in text
        assert f"datahall_model_batch_rows_sum{{{labels}}} 3" in text
        assert f'datahall_model_batch_rows_bucket{{{labels},le="1"}} 3' in text
        assert f"datahall_model_queue_seconds_count{{{labels}}} 3" in text
        assert f"datahall_model_queued_rows{{{labels}}} 0" in text
        await shelf.close()

    run(main)
