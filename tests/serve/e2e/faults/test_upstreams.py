"""Upstreams that die, freeze, flap and say nothing: whoever asked hears of it, and what was said is what is charged."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from tests.serve.e2e.faults.books import ask, before, bill, comes_to, ended, heard, metric, mock, status
from tests.serve.e2e.faults.mock import Plan

from datahall.serve.http import run

QUICK = 'connect = "500ms"\nfirst_byte = "500ms"\nbetween = "500ms"\n'
HANGS = Plan(tokens=3, then="wait")
HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"


@asynccontextmanager
async def half_open(said: bytes) -> AsyncIterator[int]:
    """A server that takes connections, says something, and then nothing any more."""

    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(said)
        while await reader.read(1 << 16):
            pass
        writer.close()

    server = await asyncio.start_server(silent, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()


def test_an_upstream_that_is_killed_mid_stream_is_told_to_all_who_listen(tmp_path: Path) -> None:
    num = 8

    async def work() -> None:
        async with mock(tmp_path, "u") as one, before(tmp_path, one.port) as front:
            streams = await asyncio.gather(*(ask(front, HANGS, stream=True) for _ in range(num)))
            wholes = [asyncio.ensure_future(ask(front, HANGS)) for _ in range(num)]
            for stream in streams:
                await heard(stream, HANGS.tokens)
            await one.until("asked", 2 * num)
            one.process.kill()
            for stream in streams:
                last = await stream.read()
                assert b'"error"' in last
                assert b"[DONE]" not in last
            assert {answer.status for answer in await asyncio.gather(*wholes)} == {502}
            assert await status(front) in (502, 503)
            await ended(front)
            said, charged = one.read(), await bill(tmp_path)
            assert charged.completion == said["completion"] == num * HANGS.tokens
            each = said["prompt"] // (2 * num)
            held, apart = divmod(
                charged.prompt, num
            )  # no upstream said a count: what was held of the whole body
            assert not apart
            assert each <= held <= 2 * each
            assert charged.requests == 2 * num + 1
            assert charged.unsettled == 0

    run(work())


def test_a_slow_stream_is_waited_for_and_a_silent_one_is_not(tmp_path: Path) -> None:
    async def work() -> None:
        async with mock(tmp_path, "u") as one, before(tmp_path, one.port, of_upstream=QUICK) as front:
            slow, silent = Plan(tokens=8, every_s=0.1), Plan(first_s=60.0)
            stream = await ask(front, slow, stream=True)
            assert await status(front, silent) == 504
            assert (await stream.read()).endswith(b"[DONE]\n\n")
            await one.until("left", 1)
            await ended(front)
            charged = await bill(tmp_path)
            assert (charged.requests, charged.completion) == (2, slow.tokens)
            assert 0 < charged.prompt < one.read()["prompt"]

    run(work())


def test_an_upstream_that_flaps_is_left_alone_tried_and_taken_back(tmp_path: Path) -> None:
    up, down = 80, 6  # by the second time, what may be asked again is saved up anew

    async def work() -> None:
        async with (
            mock(tmp_path, "flapping", up, down) as flapping,
            mock(tmp_path, "steady") as steady,
            before(tmp_path, flapping.port, steady.port) as front,
        ):
            ready, answers = [], 0
            name = 'datahall_upstream_ready{upstream="u0"}'
            async with asyncio.timeout(20):
                while flapping.read()["asked"] <= 2 * (up + down):
                    assert await status(front, stream=bool(answers % 2)) == 200
                    answers += 1
                    ready.append(await metric(front, name))
                    await asyncio.sleep(0.002)
            assert 0.0 in ready
            assert 1.0 in ready[ready.index(0.0) :]
            await ended(front)
            mine, other, charged = flapping.read(), steady.read(), await bill(tmp_path)
            assert mine["broken"] == 2 * down
            asked = mine["asked"] + other["asked"]
            assert asked == answers + mine["broken"]
            assert asked <= 1.1 * answers
            assert charged.requests == answers
            assert charged.completion == mine["completion"] + other["completion"] == 3 * answers
            assert charged.wasted_usd > 0

    run(work())


@pytest.mark.parametrize("said", [b"", HEAD], ids=["nothing", "headers"])
def test_an_upstream_that_is_half_open_is_given_up_and_another_answers(tmp_path: Path, said: bytes) -> None:
    async def work() -> None:
        async with (
            half_open(said) as dead,
            mock(tmp_path, "u") as one,
            before(tmp_path, dead, one.port, of_upstream=QUICK) as front,
        ):
            found = await asyncio.gather(*(status(front, stream=bool(place % 2)) for place in range(6)))
            assert found == [200] * 6
            await ended(front)
            answered, charged = one.read(), await bill(tmp_path)
            assert charged.requests == answered["asked"] == 6
            assert (charged.prompt, charged.completion) == (answered["prompt"], answered["completion"])
            assert charged.wasted_usd > 0

    run(work())


@pytest.mark.parametrize("said", [b"", HEAD], ids=["nothing", "headers"])
def test_where_no_other_is_a_half_open_upstream_is_an_error(tmp_path: Path, said: bytes) -> None:
    async def work() -> None:
        async with (
            half_open(said) as dead,
            before(tmp_path, dead, of_upstream=QUICK, of_model="retries = 0") as front,
        ):
            found = await asyncio.gather(*(status(front, stream=bool(place % 2)) for place in range(4)))
            assert found == [504] * 4
            await ended(front)
            charged = await bill(tmp_path)
            assert (charged.requests, charged.prompt, charged.completion) == (4, 0, 0)

    run(work())


def test_an_upstream_that_freezes_and_goes_on(tmp_path: Path) -> None:
    num = 3

    async def work() -> None:
        async with (
            mock(tmp_path, "u") as one,
            before(tmp_path, one.port, of_upstream=QUICK, of_model="retries = 0") as front,
        ):
            streams = await asyncio.gather(*(ask(front, HANGS, stream=True) for _ in range(num)))
            for stream in streams:
                await heard(stream, HANGS.tokens)
            one.freeze()
            assert await asyncio.gather(*(status(front) for _ in range(num))) == [504] * num
            for stream in streams:
                assert b'"error"' in await stream.read()
            one.thaw()
            await comes_to(front, 'datahall_upstream_ready{upstream="u0"}', 1.0)
            assert await status(front) == 200
            await ended(front)
            charged = await bill(tmp_path)
            assert charged.requests == 2 * num + 1
            assert charged.completion == num * HANGS.tokens + Plan().tokens

    run(work())
