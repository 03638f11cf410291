"""`datahall serve --virtual` as a process: OpenAI's client, vLLM's names, and failures that were asked for."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import openai
import pytest

from datahall.serve.http import Client, Failure, Origin, run

SLOW = 4.0
SAID = "--virtual llama-3.1-8b --on h100 --replicas 3 --speed 20 --listen 127.0.0.1:0 --slow 1=4"
OUT = "replicas=2,start=0s,duration=1000h"
NAMES = (
    "vllm:num_requests_running", "vllm:num_requests_waiting", "vllm:kv_cache_usage_perc", "vllm:prompt_tokens_total",
    "vllm:generation_tokens_total", "vllm:num_preemptions_total", "vllm:request_success_total",
    "vllm:time_to_first_token_seconds", "vllm:inter_token_latency_seconds", "vllm:e2e_request_latency_seconds",
    "vllm:request_time_per_output_token_seconds",
)  # fmt: skip


class Virtual:
    """A virtual engine that runs."""

    def __init__(self, process: asyncio.subprocess.Process, url: str) -> None:
        self.process = process
        self.url = url
        self.client = Client(Origin.of(url))
        self.openai = openai.AsyncOpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0)

    async def page(self) -> str:
        return (await (await self.client.request("GET", "/metrics")).read()).decode()

    async def figure(self, name: str) -> float:
        lines = [line for line in (await self.page()).splitlines() if line.startswith(name)]
        assert len(lines) == 1, lines
        return float(lines[0].rpartition(" ")[2])

    async def comes_to(self, name: str, value: float) -> None:
        async with asyncio.timeout(10):
            while await self.figure(name) != value:
                await asyncio.sleep(0.01)

    async def fail(self, replica: int, more: str = "") -> None:
        answer = await self.client.request("POST", f"/virtual/fail?replica={replica}{more}")
        assert answer.status == 200
        await answer.read()

    async def time_per_token_s(self) -> float:
        """That of one request that is alone, in simulated time."""
        name = "vllm:request_time_per_output_token_seconds_sum"
        before_s = await self.figure(name)
        await self.ask()
        return await self.figure(name) - before_s

    async def ask(self) -> None:
        body = b'{"model":"llama-3.1-8b","prompt":"the and","max_tokens":10}'
        answer = await self.client.request("POST", "/v1/completions", body)
        assert answer.status == 200
        assert b'"completion_tokens":10' in await answer.read()


@asynccontextmanager
async def virtual() -> AsyncIterator[Virtual]:
    command = (sys.executable, "-m", "datahall", "serve", *SAID.split(), "--failure", OUT)
    process = await asyncio.create_subprocess_exec(*command, stdout=-1)
    assert process.stdout is not None
    async with asyncio.timeout(60):
        said = (await process.stdout.readline()).decode()
    running = Virtual(process, said.split()[0])
    try:
        yield running
    finally:
        running.client.close()
        await running.openai.close()
        with suppress(ProcessLookupError):
            process.kill()
        await process.communicate()


def test_a_simulated_fleet_is_what_clients_and_scrapers_expect_and_fails_as_it_is_told() -> None:
    async def work() -> None:
        async with virtual() as engine:
            assert [model.id async for model in engine.openai.models.list()] == ["llama-3.1-8b"]
            pieces = await engine.openai.chat.completions.create(
                model="llama-3.1-8b", messages=[{"role": "user", "content": "the and for"}], max_tokens=5, stream=True,
                stream_options={"include_usage": True},
            )  # fmt: skip
            found = [piece async for piece in pieces]
            assert "".join(one.choices[0].delta.content or "" for one in found[:-1]) == " the and for you are"
            assert found[-2].choices[0].finish_reason == "length"
            assert found[-1].usage is not None
            assert (found[-1].usage.prompt_tokens, found[-1].usage.completion_tokens) == (3, 5)
            with pytest.raises(openai.NotFoundError):
                await engine.openai.completions.create(model="another", prompt="the")

            page = await engine.page()
            assert not [name for name in NAMES if f"# TYPE {name} " not in page]
            up = 'datahall_virtual_replica_up{model_name="llama-3.1-8b",engine="%d"}'
            assert [await engine.figure(up % place) for place in range(3)] == [1, 1, 0]

            quick_s = await engine.time_per_token_s()
            await engine.fail(0)
            await engine.comes_to(up % 0, 0)
            assert await engine.time_per_token_s() == pytest.approx(SLOW * quick_s, rel=0.01)

            await engine.fail(1, "&seconds=36000")
            await engine.comes_to(up % 1, 0)
            waiting = asyncio.ensure_future(engine.ask())
            await engine.comes_to("vllm:prompt_tokens_total", 3 + 3 * 2)
            waiting.cancel()
            aborted = 'vllm:request_success_total{model_name="llama-3.1-8b",finished_reason="abort"}'
            await engine.comes_to(aborted, 1)

            engine.process.send_signal(signal.SIGTERM)
            assert await engine.process.wait() == 0
            with pytest.raises(Failure):
                await engine.ask()

    run(work())
