"""A gateway as a process: it drains, survives being killed, forgets nobody who leaves, and is what clients expect."""

from __future__ import annotations

import asyncio
import json
import signal
import socket
from pathlib import Path
from time import time_ns

import openai
import pytest
from tests.serve.e2e.processes import gateway, upstream
from tests.serve.gateway.gateways import DONE, STREAM, TOLD, failing, stream, whole
from tests.serve.http.talking import until

from datahall.serve.http import CannotConnect, Client, Exchange, Failure, Origin, run
from datahall.serve.ledger.folder import Folder
from datahall.serve.ledger.ledger import Ledger


async def is_let_in(port: int) -> bool:
    client = Client(Origin("127.0.0.1", port))
    try:
        await (await client.request("GET", "/health")).read()
    except CannotConnect:
        return False
    finally:
        client.close()
    return True


def test_a_stream_ends_whole_although_the_gateway_was_told_to_end(tmp_path: Path) -> None:
    async def work() -> None:
        go_on = asyncio.Event()

        async def paused(exchange: Exchange) -> None:
            exchange.start(200)
            exchange.write(STREAM[0])
            await go_on.wait()
            exchange.write(STREAM[1] + DONE)
            exchange.end()

        async with upstream(paused) as (_, port), gateway(tmp_path, port) as front:
            answer = await front.ask(stream=True)
            assert await answer.piece() == STREAM[0]
            front.process.send_signal(signal.SIGTERM)
            while await is_let_in(front.port):
                pass
            go_on.set()
            assert await answer.read() == STREAM[1] + DONE
            assert await front.process.wait() == 0

    run(work())


def test_after_a_kill_every_request_is_settled_or_charged_as_it_was_held(tmp_path: Path) -> None:
    async def work() -> None:
        is_slow = False

        async def answer(exchange: Exchange) -> None:
            if is_slow:
                await asyncio.sleep(60)
            whole(exchange)

        async with upstream(answer) as (asked, port):
            async with gateway(tmp_path, port) as front:
                for _ in range(3):
                    await (await front.ask()).read()
                is_slow = True
                asking = [asyncio.ensure_future(front.ask()) for _ in range(5)]
                await until(lambda: asked.num == 8)
                front.process.kill()
                lost = await asyncio.gather(*asking, return_exceptions=True)
                assert all(isinstance(one, Failure) for one in lost)
                secret = front.secret
            is_slow = False
            async with gateway(tmp_path, port) as front:
                assert front.secret == ""
                assert (await front.ask(secret)).status == 200
                front.process.send_signal(signal.SIGTERM)
                assert await front.process.wait() == 0

    run(work())
    folder = Folder(tmp_path / "state")
    ledger = Ledger(folder, {}, time_ns())
    store = folder.store()
    all_of_it = store.totals(0, time_ns())
    rows = [(one.outcome, one.requests, one.prompt + one.completion) for one in all_of_it]
    assert ("answered", 4, 4 * TOLD["total_tokens"]) in rows
    assert sum(requests for _, requests, _ in rows) == 9
    assert ledger.num_open == 0
    store.close()
    ledger.close(time_ns())


def test_clients_that_all_leave_at_once_leave_nothing(tmp_path: Path) -> None:
    num = 200

    async def work() -> None:
        async def never(exchange: Exchange) -> None:
            await asyncio.sleep(60)
            del exchange

        async with upstream(never) as (asked, port), gateway(tmp_path, port) as front:
            asking = [asyncio.ensure_future(front.ask(stream=bool(place % 2))) for place in range(num)]
            await until(lambda: asked.num == num)
            front.client.close()
            await until(lambda: asked.num_gone == num)
            await asyncio.gather(*asking, return_exceptions=True)
            health = Client(Origin("127.0.0.1", front.port))
            assert await (await health.request("GET", "/health")).read()
            health.close()
            front.process.send_signal(signal.SIGTERM)
            assert await front.process.wait() == 0

    run(work())


def test_openais_client_works_unchanged(tmp_path: Path) -> None:
    async def work() -> None:
        async def answer(exchange: Exchange) -> None:
            await (stream(exchange) if b'"stream":true' in exchange.request.body else sent(exchange))

        async def sent(exchange: Exchange) -> None:
            whole(exchange)

        async with upstream(answer) as (asked, port), gateway(tmp_path, port) as front:
            url = f"http://127.0.0.1:{front.port}/v1"
            asking = [{"role": "user", "content": "Hello"}]
            async with openai.AsyncOpenAI(base_url=url, api_key=front.secret, max_retries=0) as client:
                answered = await client.chat.completions.create(model="m", messages=asking)  # type: ignore[arg-type]
                assert answered.choices[0].message.content == "Hi"
                pieces = await client.chat.completions.create(
                    model="m", messages=asking, stream=True, stream_options={"include_usage": True}  # type: ignore[arg-type]
                )  # fmt: skip
                found = [piece async for piece in pieces]
                assert [one.choices[0].delta.content for one in found[:-1]] == ["one", "two", "three"]
                assert found[-1].usage.total_tokens == 10
                assert [model.id async for model in client.models.list()] == ["m"]
                with pytest.raises(openai.NotFoundError):
                    await client.chat.completions.create(model="n", messages=asking)  # type: ignore[arg-type]
                asked.handler = failing(429, ("retry-after", "3"))
                with pytest.raises(openai.RateLimitError) as limited:
                    await client.chat.completions.create(model="m", messages=asking)  # type: ignore[arg-type]
                assert limited.value.response.headers["retry-after"] == "3"
            async with openai.AsyncOpenAI(base_url=url, api_key="dh-wrong", max_retries=0) as client:
                with pytest.raises(openai.AuthenticationError):
                    await client.models.list()

    run(work())


def test_openais_client_hears_that_a_stream_broke(tmp_path: Path) -> None:
    async def work() -> None:
        async def dying(exchange: Exchange) -> None:
            exchange.start(200)
            exchange.write(STREAM[0])
            await asyncio.sleep(0.01)
            exchange.abort()

        async with upstream(dying) as (_, port), gateway(tmp_path, port) as front:
            url = f"http://127.0.0.1:{front.port}/v1"
            async with openai.AsyncOpenAI(base_url=url, api_key=front.secret, max_retries=0) as client:
                pieces = await client.chat.completions.create(
                    model="m", messages=[{"role": "user", "content": "Hello"}], stream=True
                )
                with pytest.raises(openai.APIError, match="broke off"):
                    async for _ in pieces:
                        pass

    run(work())


def test_what_is_told_of_requests_has_no_prompt_and_no_secret(tmp_path: Path) -> None:
    log = tmp_path / "requests.jsonl"

    async def work() -> bytes:
        async with (
            upstream(whole) as (_, port),
            gateway(tmp_path, port, f'[telemetry]\nlog = "{log}"\n') as front,
        ):
            for _ in range(3):
                await (await front.ask(messages=[{"role": "user", "content": "PLANTED"}])).read()
            await (await front.ask("dh-PLANTED")).read()
            page = await (await front.client.request("GET", "/metrics")).read()
            assert b'datahall_requests_total{route="chat",model="m",result="answered"} 3' in page
            assert b'datahall_upstream_ready{upstream="u"} 1' in page
            held = {
                line.split()[0]: int(line.split()[1])
                for line in page.splitlines()
                if line.startswith((b"process_open_fds ", b"datahall_tasks "))
            }
            assert held[b"process_open_fds"] > held[b"datahall_tasks"] >= 1
            front.process.send_signal(signal.SIGTERM)
            assert await front.process.wait() == 0
            assert front.secret.encode() not in page + log.read_bytes()
            return page + log.read_bytes()

    said = run(work())
    assert b"PLANTED" not in said
    results = [json.loads(line)["result"] for line in log.read_text().splitlines()]
    assert results == ["answered"] * 3 + ["refused"]


def test_metrics_may_have_an_address_of_their_own(tmp_path: Path) -> None:
    async def work() -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            own = free.getsockname()[1]
        more = f'[telemetry]\nmetrics = "127.0.0.1:{own}"\n'
        async with upstream(whole) as (_, port), gateway(tmp_path, port, more) as front:
            assert (await front.client.request("GET", "/metrics")).status == 404
            watcher = Client(Origin("127.0.0.1", own))
            assert b"datahall_open_requests 0" in await (await watcher.request("GET", "/metrics")).read()
            assert (await watcher.request("GET", "/health")).status == 200
            watcher.close()

    run(work())


def test_a_start_that_fails_makes_no_key_that_nobody_sees(tmp_path: Path) -> None:
    async def work() -> None:
        async with upstream(whole) as (_, port):
            with pytest.raises(AssertionError, match="cannot listen"):
                async with gateway(tmp_path, port, f'[telemetry]\nmetrics = "127.0.0.1:{port}"\n'):
                    pass
            async with gateway(tmp_path, port) as front:
                assert front.secret

    run(work())


@pytest.mark.parametrize(
    "words", [("--listen", "nowhere"), ("--listen", "127.0.0.1:99999"), ("--state", "/proc/x")]
)
def test_what_cannot_be_started_is_said(tmp_path: Path, words: tuple[str, str]) -> None:
    import subprocess
    import sys

    file = tmp_path / "gateway.toml"
    file.write_text('[upstream.u]\nurl = "http://127.0.0.1:1"\n[model.m]\nupstreams = ["u"]\n')
    found = subprocess.run(
        [sys.executable, "-m", "datahall", "serve", str(file), *words],
        capture_output=True,
        text=True,
        timeout=30,
    )
    assert found.returncode == 2
    assert found.stderr.startswith("error[")
    assert "bug" not in found.stderr
