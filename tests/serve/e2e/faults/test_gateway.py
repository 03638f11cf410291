"""A gateway whose disk fills up, whose clients all leave, or that is killed at work: its books balance afterwards."""

from __future__ import annotations

import asyncio
import resource
import subprocess
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest
from tests.serve.e2e.faults.books import (
    MOST_TOKENS,
    ask,
    before,
    bill,
    comes_to,
    ended,
    heard,
    mock,
    state_of,
    status,
)
from tests.serve.e2e.faults.mock import Plan
from tests.serve.e2e.processes import Process

from datahall.serve.http import Failure, run

HANGS = Plan(tokens=2, then="wait")
SMALL_BYTES = 12 << 20  # two segments of the journal, and little else


@contextmanager
def no_room_for_files(front: Process) -> Iterator[None]:
    """The disk takes nothing more of one process, whatever it writes."""
    assert front.process.pid
    pid, was = front.process.pid, resource.prlimit(front.process.pid, resource.RLIMIT_FSIZE)
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (0, was[1]))
    try:
        yield
    finally:
        resource.prlimit(pid, resource.RLIMIT_FSIZE, was)


@contextmanager
def small_disk(place: Path) -> Iterator[None]:
    """A file system of its own, of a few megabytes."""
    place.mkdir()
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={SMALL_BYTES}", "tmpfs", str(place)], check=False
    )
    if made.returncode:
        pytest.skip("a file system may not be mounted here")
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(place)], check=True)


@contextmanager
def filled(place: Path) -> Iterator[None]:
    """A disk without a byte left."""
    file = place / "filling"
    with file.open("wb", buffering=0) as filling:
        try:
            while filling.write(bytes(1 << 12)) == 1 << 12:
                pass
        except OSError:
            pass
        yield
    file.unlink()


async def health(front: Process) -> str:
    said = msgspec.json.decode(await (await front.client.request("GET", "/health")).read())
    return str(said["status"])


async def is_said(front: Process, word: str) -> None:
    async with asyncio.timeout(10):
        while await health(front) != word:
            await asyncio.sleep(0.01)


def test_a_ledger_that_cannot_be_written_lets_nobody_in_says_so_and_recovers(tmp_path: Path) -> None:
    num = 4

    async def work() -> None:
        async with mock(tmp_path, "u") as one, before(tmp_path, one.port) as front:
            assert await status(front) == 200
            streams = await asyncio.gather(
                *(ask(front, Plan(tokens=6, every_s=0.1), stream=True) for _ in range(num))
            )
            with no_room_for_files(front):
                for _ in range(num):
                    refused = await ask(front)
                    assert refused.status == 503
                    assert refused.headers["retry-after"] == "1"
                    assert b"ledger_unavailable" in await refused.read()
                for stream in streams:
                    assert (await stream.read()).endswith(b"[DONE]\n\n")
                await is_said(front, "degraded")
            await is_said(front, "healthy")
            assert await status(front) == 200
            await ended(front)
            said, charged = one.read(), await bill(tmp_path)
            assert charged.requests == said["asked"] == num + 2
            assert (charged.prompt, charged.completion) == (said["prompt"], said["completion"])

    run(work())


def test_a_disk_that_fills_up_under_the_ledger_loses_no_request(tmp_path: Path) -> None:
    async def work() -> None:
        async with mock(tmp_path, "u") as one, before(tmp_path, one.port) as front:
            found: Counter[int] = Counter()

            async def some() -> None:
                found.update(await asyncio.gather(*(status(front, stream=bool(n % 2)) for n in range(50))))

            await some()
            with filled(state_of(tmp_path)):
                for _ in range(4):
                    await some()
            await is_said(front, "healthy")
            await some()
            await ended(front)
            said, charged = one.read(), await bill(tmp_path)
            assert found.keys() <= {200, 503}
            assert found.total() == 300
            assert found[200] == charged.requests == said["asked"]
            assert (charged.prompt, charged.completion) == (said["prompt"], said["completion"])

    with small_disk(state_of(tmp_path)):
        run(work())


def test_a_thousand_clients_that_leave_at_once_are_charged_what_they_heard(tmp_path: Path) -> None:
    num = 1000

    async def work() -> None:
        async with mock(tmp_path, "u") as one, before(tmp_path, one.port) as front:
            asking = [
                asyncio.ensure_future(ask(front, HANGS, stream=bool(place % 2))) for place in range(num)
            ]
            await one.until("asked", num)
            streams = await asyncio.gather(*asking[1::2])
            for stream in streams:
                await heard(stream, HANGS.tokens)
            front.client.close()
            await one.until("left", num)
            await comes_to(front, "datahall_open_requests", 0.0)
            assert await status(front) == 200
            await asyncio.gather(*asking, return_exceptions=True)
            await ended(front)
            said, charged = one.read(), await bill(tmp_path)
            assert charged.requests == said["asked"] == num + 1
            assert charged.completion == said["completion"]
            assert charged.unsettled == 0

    run(work())


def test_a_gateway_that_is_killed_under_load_bills_every_request_once(tmp_path: Path) -> None:
    num_clients, plan = 24, Plan(tokens=4, every_s=0.005)

    async def work() -> None:
        whole: Counter[str] = Counter()
        async with mock(tmp_path, "u") as one:
            async with before(tmp_path, one.port) as front:

                async def client(is_stream: bool) -> None:
                    while True:
                        whole["asked"] += 1
                        try:
                            answer = await ask(front, plan, stream=is_stream)
                            said = await answer.read()
                        except Failure:
                            return
                        assert answer.status == 200
                        assert b'"error"' not in said
                        whole["answered"] += 1

                clients = [asyncio.ensure_future(client(bool(n % 2))) for n in range(num_clients)]
                await one.until("asked", 400)
                front.process.kill()
                await asyncio.gather(*clients)
                secret = front.secret
            async with before(tmp_path, one.port) as front:
                assert await status(front, plan, secret=secret) == 200
                await ended(front)
            said, charged = one.read(), await bill(tmp_path)
            settled = charged.requests - charged.unsettled
            assert whole["answered"] + 1 <= settled <= said["asked"] <= charged.requests <= whole["asked"] + 1
            assert charged.completion == settled * plan.tokens + charged.unsettled * MOST_TOKENS
            assert 0 < charged.unsettled <= num_clients
            each = said["prompt"] // said["asked"]
            held, apart = divmod(charged.prompt - settled * each, charged.unsettled)
            assert not apart
            assert each <= held <= 2 * each  # all of a body is held, of which a part is the prompt

    run(work())
