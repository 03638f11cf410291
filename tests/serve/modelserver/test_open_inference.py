"""The Open Inference Protocol, version 2: what a client of any server that speaks it may expect."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.serve.modelserver.models import WEIGHTS, Held, ask, function, linear, opener, run

from datahall.serve.modelserver.app import ModelServer
from datahall.serve.modelserver.batcher import Batching
from datahall.serve.modelserver.refused import BadInput
from datahall.serve.modelserver.shelf import Shelf
from datahall.serve.modelserver.tensor import Tensor, array_of


def tensor(data: list[Any], shape: list[int], datatype: str = "FP32", name: str = "x") -> dict[str, Any]:
    return {"name": name, "shape": shape, "datatype": datatype, "data": data}


async def serving(opened: Any, most_rows: int = 32) -> tuple[ModelServer, Shelf]:
    shelf = Shelf()
    await shelf.load("m", opened, version="7", batching=Batching(most_rows=most_rows))
    return ModelServer(shelf, "m", "0.1"), shelf


def test_health_and_metadata(tmp_path: Path) -> None:
    async def main() -> None:
        server, shelf = await serving(opener(linear(tmp_path)))
        assert await ask(server, "/v2") == (200, {"name": "datahall", "version": "0.1", "extensions": []})
        assert await ask(server, "/v2/health/live") == (200, {"live": True})
        assert await ask(server, "/v2/health/ready") == (200, {"ready": True})
        assert await ask(server, "/v2/models/m/ready") == (200, {"name": "m", "ready": True})
        assert await ask(server, "/v2/models/m/versions/7/ready") == (200, {"name": "m", "ready": True})
        assert await ask(server, "/v2/models/m") == (
            200,
            {
                "name": "m",
                "versions": ["7"],
                "platform": "onnx_onnxv1",
                "inputs": [{"name": "x", "datatype": "FP32", "shape": [-1, 3]}],
                "outputs": [{"name": "y", "datatype": "FP32", "shape": [-1, 2]}],
            },
        )
        await shelf.close()
        assert (await ask(server, "/v2/health/ready"))[0] == 503

    run(main)


@given(
    rows=st.lists(
        st.lists(st.lists(st.integers(-9, 9), min_size=3, max_size=3), min_size=1, max_size=11),
        min_size=1,
        max_size=6,
    ),
    flat=st.booleans(),
)
@settings(max_examples=15, deadline=None)
def test_rows_of_many_requests_come_back_to_who_sent_them(
    tmp_path_factory: pytest.TempPathFactory, rows: list[list[list[int]]], flat: bool
) -> None:
    file = linear(tmp_path_factory.mktemp("models"))

    async def main() -> None:
        server, shelf = await serving(opener(file), most_rows=4)
        bodies = [
            {
                "id": str(place),
                "inputs": [tensor(np.array(many).ravel().tolist() if flat else many, [len(many), 3])],
            }
            for place, many in enumerate(rows)
        ]
        answers = await asyncio.gather(*(ask(server, "/v2/models/m/infer", body) for body in bodies))
        for place, (many, (status, said)) in enumerate(zip(rows, answers, strict=True)):
            assert status == 200
            assert (said["id"], said["model_name"], said["model_version"]) == (str(place), "m", "7")
            (output,) = said["outputs"]
            assert (output["name"], output["shape"], output["datatype"]) == ("y", [len(many), 2], "FP32")
            assert output["data"] == (np.array(many) @ WEIGHTS).ravel().tolist()
        assert (
            shelf.get("m").batcher.meter.rows.num >= sum(map(len, rows)) / 4
        )  # never more than four together
        await shelf.close()

    run(main)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"{}", "inputs"),
        (b"[]", "object"),
        (b"[" * 100_000, ""),
        (b'{"inputs": [', "JSON|truncated"),
        ({"inputs": []}, "where x are taken"),
        ({"inputs": [tensor([1, 2, 3], [1, 3], name="z")]}, "where x are taken"),
        ({"inputs": [tensor([1, 2, 3], [1, 3])] * 2}, "twice"),
        ({"inputs": [tensor([1, 2, 3], [1, 4])]}, "do not fill"),
        ({"inputs": [tensor([1, 2, 3, 4], [1, 4])]}, r"\[1, 4\], where \[-1, 3\]"),
        ({"inputs": [tensor([1, 2, 3], [3])]}, "where"),
        ({"inputs": [tensor([], [0, 3])]}, "no rows"),
        ({"inputs": [tensor([1, 2, 3], [-1, 3])]}, ">= 0"),
        ({"inputs": [tensor([1, 2, 3], [2**62, 3])]}, "shape"),
        ({"inputs": [tensor([1, 2, 3], [1, 3], "INT64")]}, "FP32 is taken"),
        ({"inputs": [tensor([1, 2, 3], [1, 3], "FP99")]}, "no datatype"),
        ({"inputs": [tensor(["1", "2", "3"], [1, 3])]}, "not FP32"),
        (
            {"inputs": [tensor(["1" * 50_000, *"2" * 10_000], [10_001])]},
            "not FP32",
        ),  # 2 GB as one array of texts
        ({"inputs": [tensor([["1"], [2, 3]], [1, 3])]}, "not FP32"),
        ({"inputs": [tensor([], [0, 2**40, 2**40])]}, "no array"),
        ({"inputs": [tensor([1.0] * 9_000, [3_000, 3])]}, "3000 rows in one request"),
        ({"inputs": [tensor([None, 2, 3], [1, 3])]}, "not FP32"),
        ({"inputs": [tensor([[1, 2], [3]], [1, 3])]}, "not FP32"),
        ({"inputs": [tensor([True, False, True], [1, 3])]}, "not FP32"),
        ({"inputs": [tensor([10**30, 2, 3], [1, 3])]}, "FP32"),
        ({"inputs": [tensor([1e300, 2, 3], [1, 3])]}, "beyond"),
        ({"inputs": [tensor([1, 2, 3], [1, 3])], "outputs": [{"name": "q"}]}, "q is no output"),
        ({"inputs": [tensor([1, 2, 3], [1, 3])], "outputs": [{"name": "y"}] * 2}, "asked for twice"),
    ],
)
def test_a_request_that_cannot_be_run_is_400_and_says_why(tmp_path: Path, body: Any, message: str) -> None:
    async def main() -> None:
        server, shelf = await serving(opener(linear(tmp_path)))
        status, said = await ask(server, "/v2/models/m/infer", body)
        assert status == 400
        assert said.keys() == {"error"}
        assert re.search(message, said["error"])
        await shelf.close()

    run(main)


@pytest.mark.parametrize(
    ("path", "method", "status"),
    [
        ("/v2/models/other", "GET", 404),
        ("/v2/models/m/versions/8", "GET", 404),
        ("/v2/models/other/infer", "POST", 404),
        ("/v2/models/..%2f..%2fetc%2fpasswd", "GET", 404),
        ("/v2/models/m/nothing", "GET", 404),
        ("/v2/models", "GET", 404),
        ("/v2/nothing", "GET", 404),
        ("/v2/models/m/infer", "GET", 405),
        ("/v2/models/m", "POST", 405),
    ],
)
def test_what_is_not_there(tmp_path: Path, path: str, method: str, status: int) -> None:
    async def main() -> None:
        server, shelf = await serving(opener(linear(tmp_path)))
        assert (await ask(server, path, b"{}", method))[0] == status
        await shelf.close()

    run(main)


def test_a_model_of_one_fixed_shape_runs_request_by_request(tmp_path: Path) -> None:
    async def main() -> None:
        server, shelf = await serving(opener(linear(tmp_path, rows=2)))
        body = {"inputs": [tensor([1, 0, 0, 0, 1, 0], [2, 3])]}
        answers = await asyncio.gather(*(ask(server, "/v2/models/m/infer", body) for _ in range(3)))
        assert [said["outputs"][0]["data"] for _, said in answers] == [[0, 1, 2, 3]] * 3
        assert shelf.get("m").batcher.meter.rows.num == 3
        await shelf.close()

    run(main)


def test_a_model_that_fails_on_a_piece_of_a_large_request_fails_it_once() -> None:
    def picky(features: Any) -> Any:
        if (features == 13).any():
            raise ValueError("thirteen")
        return features

    async def main() -> None:
        server, shelf = await serving(function(picky, 1), most_rows=4)
        body = {"inputs": [tensor(list(range(20)), [20, 1], name="features")]}
        status, said = await ask(server, "/v2/models/m/infer", body)
        assert status == 500
        assert "thirteen" in said["error"]
        await shelf.close()

    run(main)


def test_a_model_that_answers_other_rows_than_it_was_sent_fails() -> None:
    async def main() -> None:
        server, shelf = await serving(function(lambda features: features[:1], 1))
        body = {"inputs": [tensor([1, 2, 3], [3, 1], name="features")]}
        status, said = await ask(server, "/v2/models/m/infer", body)
        assert status == 500
        assert "after 3 rows" in said["error"]
        await shelf.close()

    run(main)


def test_rows_of_other_shapes_share_no_batch() -> None:
    async def main() -> None:
        server, shelf = await serving(function(lambda features: features))
        widths = [1, 2, 1, 3, 2]
        bodies = [{"inputs": [tensor([7] * width, [1, width], name="features")]} for width in widths]
        answers = await asyncio.gather(*(ask(server, "/v2/models/m/infer", body) for body in bodies))
        assert [said["outputs"][0]["shape"] for _, said in answers] == [[1, width] for width in widths]
        assert shelf.get("m").batcher.meter.released["isolated"] == 0
        await shelf.close()

    run(main)


def test_a_request_of_which_only_a_part_has_room_leaves_nothing_behind() -> None:
    model = Held()

    async def main() -> None:
        shelf = Shelf()
        await shelf.load("m", function(model, 1), batching=Batching(most_rows=2, most_queued=4))
        server = ModelServer(shelf, "m", "1")
        first = asyncio.create_task(ask(server, "/predict", {"features": [1]}))
        await model.entered(1)
        second = asyncio.create_task(ask(server, "/predict", {"features": [1]}))
        await asyncio.sleep(0)
        body = {"inputs": [tensor([1.0] * 4, [4, 1], name="features")]}
        assert (await ask(server, "/v2/models/m/infer", body))[0] == 503
        assert shelf.get("m").batcher.num_queued == 1
        model.door.set()
        assert [status for status, _ in await asyncio.gather(first, second)] == [200, 200]
        await shelf.close()

    run(main)


def test_who_leaves_is_not_computed_for() -> None:
    model = Held()

    async def main() -> None:
        server, shelf = await serving(function(model, 1), most_rows=1)
        body = {"inputs": [tensor([1, 2], [2, 1], name="features")]}
        leaving = asyncio.create_task(ask(server, "/v2/models/m/infer", body))
        await model.entered(1)
        leaving.cancel()
        await asyncio.wait([leaving])
        model.door.set()
        await shelf.close()
        assert len(model.sizes) == 1

    run(main)


class Sum:
    """Two inputs, added."""

    platform = "test"
    has_rows = True
    inputs = (Tensor("left", "INT64", (-1,)), Tensor("right", "INT64", (-1,)))
    outputs = (Tensor("sum", "INT64", (-1,)),)

    def run(self, arrays: Any) -> Any:
        return {"sum": arrays["left"] + arrays["right"]}


def test_inputs_of_one_request_have_as_many_rows_each() -> None:
    async def main() -> None:
        server, shelf = await serving(Sum)
        left, right = tensor([1, 2], [2], "INT64", "left"), tensor([3, 4], [2], "INT64", "right")
        status, said = await ask(server, "/v2/models/m/infer", {"inputs": [right, left]})
        assert status == 200
        assert said["outputs"] == [{"name": "sum", "shape": [2], "datatype": "INT64", "data": [4, 6]}]
        short = tensor([3], [1], "INT64", "right")
        status, said = await ask(server, "/v2/models/m/infer", {"inputs": [left, short]})
        assert status == 400
        assert "1 and 2 rows" in said["error"]
        assert (await ask(server, "/predict", {"features": [1]}))[0] == 422  # which has one input
        await shelf.close()

    run(main)


@pytest.mark.parametrize(
    ("data", "is_text"),
    [(["a", "bc"], True), ([["a"], ["b"]], True), (["a", 1], False), ([["a"], "b"], False)],
)
def test_texts_are_taken_where_all_are_and_as_long_as_they_are(data: list[Any], is_text: bool) -> None:
    declared = Tensor("x", "BYTES", (-1,), is_open=True)
    if is_text:
        assert array_of(declared, data).tolist() == data
    else:
        with pytest.raises(BadInput, match="not BYTES"):
            array_of(declared, data)
