"""The two books that have to say the same: what a gateway charged, and what its upstreams said."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest
from tests.serve.e2e.faults.mock import Plan
from tests.serve.e2e.processes import Process, started

from datahall.serve.http import Response

INPUT_USD, OUTPUT_USD = 1000.0, 2000.0  # of a million tokens
MOST_TOKENS = 20  # that a request of these tests may take
MOST_WAIT_S = 20.0


class Mock(NamedTuple):
    """An upstream that runs."""

    process: asyncio.subprocess.Process
    port: int
    book: Path

    def freeze(self) -> None:
        self.process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        self.process.send_signal(signal.SIGCONT)

    def read(self) -> Counter[str]:
        """How many requests it was asked, and came to which end; the tokens of prompts and those that it said."""
        found: Counter[str] = Counter()
        for line in self.book.read_text().splitlines():
            _, what, tokens = line.split()
            if what == "said":
                found["completion"] += int(tokens)
            else:
                found[what] += 1
                found["prompt"] += int(tokens)
        return found

    async def until(self, what: str, num: int) -> None:
        """Wait until so many requests came to that."""
        async with asyncio.timeout(MOST_WAIT_S):
            while self.read()[what] < num:
                await asyncio.sleep(0.01)


class Bill(NamedTuple):
    """What `datahall gateway bill` says of all."""

    requests: int
    unsettled: int
    prompt: int
    completion: int
    charged_usd: float
    wasted_usd: float

    def check(self) -> Bill:
        """Money is tokens times their price, to the nano-dollar."""
        due_usd = (self.prompt * INPUT_USD + self.completion * OUTPUT_USD) / 1e6
        assert self.charged_usd == pytest.approx(due_usd, rel=1e-12, abs=1e-10)
        return self


@asynccontextmanager
async def mock(folder: Path, name: str, up: int = 0, down: int = 0) -> AsyncIterator[Mock]:
    """An upstream with a book of that name; where `down` is more than 0 it flaps."""
    book = folder / f"{name}.book"
    command = (sys.executable, str(Path(__file__).with_name("mock.py")), str(book), str(up), str(down))
    process = await asyncio.create_subprocess_exec(*command, stdout=-1)
    assert process.stdout is not None
    async with asyncio.timeout(30):
        port = int(await process.stdout.readline())
    book.touch()
    try:
        yield Mock(process, port, book)
    finally:
        with suppress(ProcessLookupError):
            process.kill()
        await process.communicate()


@asynccontextmanager
async def before(
    folder: Path, *ports: int, of_upstream: str = "", of_model: str = ""
) -> AsyncIterator[Process]:
    """A gateway before upstreams `u0`, `u1` … at these ports, for the model `m`."""
    upstreams = "".join(
        f'[upstream.u{place}]\nurl = "http://127.0.0.1:{port}/v1"\n{of_upstream}\n'
        for place, port in enumerate(ports)
    )
    names = [f"u{place}" for place in range(len(ports))]
    file = folder / "gateway.toml"
    file.write_text(
        f'[server]\nlisten = "127.0.0.1:0"\nstate = "{state_of(folder)}"\n{upstreams}'
        f"[model.m]\nupstreams = {json.dumps(names)}\n{of_model}\n"
        f"price = {{ input = {INPUT_USD:g}, output = {OUTPUT_USD:g} }}\n"
    )
    async with started(file) as front:
        yield front


def state_of(folder: Path) -> Path:
    return folder / "state"


async def ask(front: Process, plan: Plan | None = None, secret: str = "", **fields: Any) -> Response:
    """Ask for what a plan says."""
    content = msgspec.json.encode(plan or Plan()).decode()
    messages = [{"role": "user", "content": content}]
    return await front.ask(secret, messages=messages, max_tokens=MOST_TOKENS, **fields)


async def status(front: Process, plan: Plan | None = None, **fields: Any) -> int:
    """Ask, hear all of it, and say how it went."""
    answer = await ask(front, plan, **fields)
    await answer.read()
    return answer.status


async def heard(answer: Response, num: int) -> bytes:
    """What a stream says, until that many tokens of it have come."""
    said = b""
    async with asyncio.timeout(MOST_WAIT_S):
        while said.count(b'"content"') < num:
            piece = await answer.piece()
            assert piece, said
            said += piece
    return said


async def metric(front: Process, name: str) -> float:
    """One figure of the page of metrics."""
    page = (await (await front.client.request("GET", "/metrics")).read()).decode()
    return float(next(line for line in page.splitlines() if line.startswith(name)).rpartition(" ")[2])


async def comes_to(front: Process, name: str, value: float) -> None:
    """Wait until a figure has that value."""
    async with asyncio.timeout(MOST_WAIT_S):
        while await metric(front, name) != value:
            await asyncio.sleep(0.01)


async def ended(front: Process) -> None:
    """End a gateway as an operator does; all is well then."""
    front.process.send_signal(signal.SIGTERM)
    async with asyncio.timeout(MOST_WAIT_S):
        assert await front.process.wait() == 0


async def bill(folder: Path) -> Bill:
    """The books, asked as a person asks; what they say of money follows from what they say of tokens."""
    return (await books(folder)).check()


async def books(folder: Path) -> Bill:
    """The books, whatever the prices are."""
    command = (
        sys.executable,
        "-m",
        "datahall",
        "gateway",
        "bill",
        "--state",
        str(state_of(folder)),
        "--json",
    )
    process = await asyncio.create_subprocess_exec(*command, stdout=-1, stderr=-1)
    said, wrong = await process.communicate()
    assert process.returncode == 0, wrong
    found = json.loads(said)
    rows = [row for table in found["tables"] if table["title"] == "by model" for row in table["rows"]]
    results = found["results"]
    return Bill(
        results["num_requests"],
        results["num_unsettled"],
        sum(row["prompt_tokens"] for row in rows),
        sum(row["completion_tokens"] for row in rows),
        results["charged_usd"],
        sum(row["wasted_usd"] for row in rows),
    )
