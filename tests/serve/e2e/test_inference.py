"""A model server behind a gateway, both as processes: a call is authenticated, limited, answered and billed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
from tests.serve.e2e.faults.books import books, ended, state_of
from tests.serve.e2e.processes import Process, started
from tests.serve.modelserver.models import linear
from tests.serve.modelserver.test_process import served

from datahall.serve.http import run

CALL_USD = 0.002
ROWS = {"name": "x", "shape": [2, 3], "datatype": "FP32", "data": [1, 0, 0, 0, 1, 0]}


async def post(front: Process, path: str, **body: Any) -> tuple[int, Any]:
    headers = [("authorization", f"Bearer {front.secret}")]
    answer = await front.client.request("POST", path, msgspec.json.encode(body), headers)
    return answer.status, msgspec.json.decode(await answer.read())


def test_calls_of_a_model_go_through_the_gateway_and_are_billed(tmp_path: Path) -> None:
    file = linear(tmp_path)

    async def work() -> None:
        async with served("--model", str(file)) as (_, port, _):
            configuration = tmp_path / "gateway.toml"
            configuration.write_text(
                f'[server]\nlisten = "127.0.0.1:0"\nstate = "{state_of(tmp_path)}"\n'
                f'[upstream.models]\nurl = "http://127.0.0.1:{port}"\napi = "inference"\nhealth = "/v2/health/ready"\n'
                f'[model.m]\nupstreams = ["models"]\nnamed = "{file.stem}"\nprice = {{ call = {CALL_USD} }}\n'
            )
            async with started(configuration) as front:
                status, said = await post(front, "/predict", features=[1, 0, 0])
                assert (status, said["prediction"]) == (200, [0, 1])
                status, said = await post(front, "/v2/models/m/infer", inputs=[ROWS])
                assert (status, said["outputs"][0]["data"]) == (200, [0, 1, 2, 3])
                assert (await post(front, "/predict", features=[1]))[0] == 422
                page = await (await front.client.request("GET", "/metrics")).read()
                assert b'datahall_requests_total{route="infer",model="m",result="answered"} 1' in page
                await ended(front)
        found = await books(tmp_path)
        assert (found.requests, found.prompt, found.completion) == (3, 2, 0)
        assert found.charged_usd == 2 * CALL_USD

    run(work())


def test_a_model_of_a_file_runs_in_the_gateway_itself(tmp_path: Path) -> None:
    async def work() -> None:
        configuration = tmp_path / "gateway.toml"
        configuration.write_text(
            f'[server]\nlisten = "127.0.0.1:0"\nstate = "{state_of(tmp_path)}"\n'
            f'[upstream.linear]\nfile = "{linear(tmp_path)}"\n[model.m]\nupstreams = ["linear"]\n'
        )
        async with started(configuration) as front:
            status, said = await post(front, "/predict", features=[1, 0, 0])
            assert (status, said["prediction"]) == (200, [0, 1])
            status, said = await post(front, "/v2/models/m/infer", inputs=[ROWS])
            assert (status, said["outputs"][0]["data"]) == (200, [0, 1, 2, 3])
            await ended(front)
        assert (await books(tmp_path)).requests == 2

    run(work())
