"""A gateway that runs is changed by who runs it, by HTTP and by SIGHUP, while clients ask it."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.serve.e2e.processes import Process, gateway, upstream
from tests.serve.gateway.gateways import whole

from datahall.serve.http import Client, Failure, Origin, run

SECRET = "of-the-admin"
ADMIN = '[admin]\nlisten = "127.0.0.1:0"\nkey = "env:ADMIN_KEY"\n'


async def admin(front: Process, method: str, path: str, **body: Any) -> tuple[int, Any]:
    client = Client(Origin("127.0.0.1", front.admin_port))
    try:
        answer = await client.request(
            method, path, msgspec.json.encode(body), [("authorization", f"Bearer {SECRET}")]
        )
        return answer.status, msgspec.json.decode(await answer.read())
    finally:
        client.close()


@pytest.mark.parametrize("by", ["http", "signal"])
def test_no_request_is_lost_while_the_file_is_read_anew(
    tmp_path: Path, by: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ADMIN_KEY", SECRET)

    async def work() -> None:
        seen = set()
        is_over = False

        async def ask() -> None:
            while not is_over:
                answer = await front.ask()
                await answer.read()
                seen.add(answer.status)

        async with (
            upstream(whole) as (first, one),
            upstream(whole) as (second, two),
            gateway(tmp_path, one, ADMIN) as front,
        ):
            clients = [asyncio.ensure_future(ask()) for _ in range(8)]
            file = tmp_path / "gateway.toml"
            async with asyncio.timeout(20):
                while not first.num:
                    await asyncio.sleep(0.01)
                file.write_text(file.read_text().replace(f":{one}/", f":{two}/"))
                if by == "http":
                    status, said = await admin(front, "POST", "/reload")
                    assert (status, said["upstreams"], said["models"]) == (200, ["u"], ["m"])
                else:
                    front.process.send_signal(signal.SIGHUP)
                    assert front.process.stderr is not None
                    assert await front.process.stderr.readline() == b"the file was loaded anew\n"
                num = second.num
                while second.num < num + 20:
                    await asyncio.sleep(0.01)
            is_over = True
            await asyncio.gather(*clients)
            assert seen == {200}

    run(work())


def test_the_admin_has_a_door_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ADMIN_KEY", SECRET)

    async def work() -> None:
        async with upstream(whole) as (_, port), gateway(tmp_path, port, ADMIN) as front:
            status, made = await admin(front, "POST", "/keys", name="new", rpm=1)
            assert status == 200
            assert (await (await front.ask(made["key"])).read())[:1] == b"{"
            assert (await front.ask(made["key"])).status == 429
            answer = await front.client.request(
                "GET", "/keys", headers=[("authorization", f"Bearer {SECRET}")]
            )
            assert answer.status == 404
            await answer.read()
            front.process.send_signal(signal.SIGTERM)
            assert await front.process.wait() == 0
            with pytest.raises(Failure):
                await admin(front, "GET", "/keys")

    run(work())
