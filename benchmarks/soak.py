"""`make soak`: a gateway under mixed load for as long as is said, what it holds meanwhile, and its books afterwards.

    python benchmarks/soak.py [SECONDS]

Streams, whole answers, answers from the cache, clients that leave while they wait and in the middle of a stream,
upstreams that fail before an answer and within one.  Clients and upstreams are one process, so that it is known of
every request what was delivered; the gateway is another.  Exit code 1: something grew, hung, or was billed wrongly.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import msgspec
from table import Line, printed

from datahall.serve.http import Client, Exchange, Failure, Origin, run, serve

SOAK_S = 600.0
CLIENTS, PAUSE_S = 48, 0.1
KINDS = {
    "stream": 8,
    "whole": 8,
    "cached": 8,
    "left in a stream": 2,
    "left waiting": 2,
    "failed": 1,
    "broken": 1,
}
TOKENS, NUM_QUESTIONS = 12, 20
INPUT_USD, OUTPUT_USD = 3.0, 15.0  # of a million tokens
BYTES_PER_TOKEN = 3  # as a gateway counts what nobody tells
NUM_SAMPLES, SHOWN = 60, 12
WARM = NUM_SAMPLES // 5  # samples before what is held counts as the beginning
MOST_MEMORY_BYTES, MOST_GROWTH_RATIO, MOST_MORE_RATIO, IDLE_TASKS, MOST_STATE_BYTES = (
    100e6,
    1.25,
    1.5,
    2.0,
    32e6,
)
CONFIGURATION = """
[server]
listen = "127.0.0.1:0"
state = "{folder}/state"
[cache]
size = "4 MB"
ttl = "2s"
[upstream.a]
url = "http://127.0.0.1:{a}/v1"
[upstream.b]
url = "http://127.0.0.1:{b}/v1"
[model.m]
upstreams = ["a", "b"]
price = {{ input = {input:g}, output = {output:g} }}
"""


class Turn:
    """One request: what it is to become, and what came of it."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.heard = (
            asyncio.Event()
        )  # the client has all that was said so far, or the upstream what was asked
        self.has_failed = False  # an upstream, which does so once


class Held(NamedTuple):
    """What a gateway holds at one moment."""

    at_s: float
    requests: int
    memory_bytes: float
    descriptors: float
    tasks: float
    open_requests: float
    state_bytes: float


class Soak:
    """The clients, the upstreams, and what both know."""

    def __init__(self) -> None:
        self.turns: dict[str, Turn] = {}
        self.ended: Counter[str] = Counter()
        self.wrong: Counter[str] = Counter()
        self.prompt = self.completion = 0  # that is to be charged
        self.random = Random(1)
        self.num_turns = 0

    # the upstreams

    async def answer(self, exchange: Exchange) -> None:
        """Do as the turn of a request says; questions of the cache have none."""
        body = msgspec.json.decode(exchange.request.body, type=dict[str, msgspec.Raw])
        messages = body["messages"]
        name = msgspec.json.decode(messages)[0]["content"].split()[0]
        turn = Turn("cached") if name.startswith("question") else self.turns.get(name)
        if turn is None:  # its client has left before it came here
            exchange.abort()
            return
        prompt = len(memoryview(messages)) // BYTES_PER_TOKEN + 1
        if turn.kind == "failed" and not turn.has_failed:
            turn.has_failed = True
            exchange.send(500, b"{}")
        elif turn.kind == "left waiting":
            turn.heard.set()
            await asyncio.sleep(SOAK_S)
        elif turn.kind in ("stream", "left in a stream", "broken"):
            await self._stream(exchange, turn, prompt)
        else:
            await asyncio.sleep(self.random.uniform(0.0, 0.02))
            self._count(prompt, TOKENS)
            message = {"role": "assistant", "content": "word " * TOKENS}
            exchange.send(200, encoded(choices=[{"index": 0, "message": message}], usage=usage(prompt)))

    async def _stream(self, exchange: Exchange, turn: Turn, prompt: int) -> None:
        exchange.start(200)
        is_whole = turn.kind == "stream"
        num = TOKENS if is_whole else TOKENS // 2
        self._count(prompt, num)
        for _ in range(num):
            exchange.write(event(choices=[{"index": 0, "delta": {"content": "word"}}]))
            await asyncio.sleep(0.005)
        if is_whole:
            exchange.write(event(choices=[{"index": 0, "delta": {}, "finish_reason": "stop"}]))
            exchange.write(event(choices=[], usage=usage(prompt)) + b"data: [DONE]\n\n")
            exchange.end()
            return
        await turn.heard.wait()
        if turn.kind == "broken":
            exchange.abort()
        else:
            await asyncio.sleep(SOAK_S)

    def _count(self, prompt: int, completion: int) -> None:
        self.prompt += prompt
        self.completion += completion

    # the clients

    async def client(self, front: Client, key: str, until_s: float) -> None:
        """Ask, one after the other."""
        kinds, weights = list(KINDS), list(KINDS.values())
        while time.perf_counter() < until_s:
            await self.ask(front, key, self.random.choices(kinds, weights)[0])
            await asyncio.sleep(self.random.uniform(0.0, 2 * PAUSE_S))

    async def ask(self, front: Client, key: str, kind: str) -> None:
        self.num_turns += 1
        name, turn = f"t{self.num_turns}", Turn(kind)
        if kind == "cached":
            name = f"question{self.random.randrange(NUM_QUESTIONS)}"
        else:
            self.turns[name] = turn
        asking = asyncio.ensure_future(self._asked(front, key, turn, name))
        if kind == "left waiting":
            await asyncio.wait(
                [asking, asyncio.ensure_future(turn.heard.wait())], return_when=asyncio.FIRST_COMPLETED
            )
            await asyncio.sleep(self.random.uniform(0.0, 0.2))
            asking.cancel()
        try:
            async with asyncio.timeout(60):
                what = await asking
        except asyncio.CancelledError:
            what = "left"
        except TimeoutError:
            what = "hung"
        except Failure as failure:
            what = str(failure)
        self.turns.pop(name, None)
        self.ended[kind] += 1
        if what not in EXPECTED[kind]:
            self.wrong[f"{kind}: {what}"] += 1

    async def _asked(self, front: Client, key: str, turn: Turn, name: str) -> str:
        is_stream = turn.kind in ("stream", "left in a stream", "broken")
        body = encoded(
            model="m",
            max_tokens=64,
            stream=is_stream,
            messages=[{"role": "user", "content": f"{name} of a soak"}],
        )
        headers = [("authorization", f"Bearer {key}")]
        if turn.kind != "cached":
            headers.append(("cache-control", "no-store"))
        answer = await front.request("POST", "/v1/chat/completions", body, headers)
        try:
            said = b""
            while piece := await answer.piece():
                said += piece
                if turn.kind != "stream" and is_stream and said.count(b'"content"') == TOKENS // 2:
                    turn.heard.set()
                    if turn.kind == "left in a stream":
                        return "left"
            if answer.status != 200:
                return str(answer.status)
            return "broken" if b'"error"' in said else "whole"
        finally:
            answer.close()


EXPECTED = {
    "stream": {"whole"}, "whole": {"whole"}, "cached": {"whole"}, "left in a stream": {"left"},
    "left waiting": {"left"}, "failed": {"whole", "502"}, "broken": {"broken"},
}  # fmt: skip


def encoded(**fields: Any) -> bytes:
    return msgspec.json.encode(fields)


def event(**fields: Any) -> bytes:
    return b"data: " + encoded(**fields) + b"\n\n"


def usage(prompt: int) -> dict[str, int]:
    return {"prompt_tokens": prompt, "completion_tokens": TOKENS, "total_tokens": prompt + TOKENS}


async def soak(seconds: float) -> bool:
    """Load a gateway for so long; whether all was well."""
    work = Soak()
    servers = [await serve(work.answer) for _ in "ab"]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        ports = dict(zip("ab", (server.port for server in servers), strict=True))
        file = folder / "gateway.toml"
        file.write_text(CONFIGURATION.format(folder=folder, input=INPUT_USD, output=OUTPUT_USD, **ports))
        async with gateway(file) as (process, port, key):
            front = Client(Origin("127.0.0.1", port))
            start_s = time.perf_counter()
            clients = [
                asyncio.ensure_future(work.client(front, key, start_s + seconds)) for _ in range(CLIENTS)
            ]
            samples = []
            for number in range(NUM_SAMPLES):
                await asyncio.sleep(
                    max(0.0, start_s + (number + 1) * seconds / NUM_SAMPLES - time.perf_counter())
                )
                samples.append(await held(port, folder, time.perf_counter() - start_s, work.num_turns))
            await asyncio.gather(*clients)
            front.close()
            rest = await quiet(port, folder, seconds, work.num_turns)
            process.terminate()
            is_ended = await process.wait() == 0
        bill = billed(folder)
    for server in servers:
        await server.close()
    return report(work, samples, rest, bill, is_ended)


@asynccontextmanager
async def gateway(file: Path) -> AsyncIterator[tuple[asyncio.subprocess.Process, int, str]]:
    """`datahall serve`: its process, port and key."""
    command = (sys.executable, "-m", "datahall", "serve", str(file))
    process = await asyncio.create_subprocess_exec(*command, stdout=-1)
    assert process.stdout is not None
    port = int((await process.stdout.readline()).split()[0].rpartition(b":")[2])
    key = (await process.stdout.readline()).split()[1].decode()
    try:
        yield process, port, key
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


async def held(port: int, folder: Path, at_s: float, requests: int) -> Held:
    """What the gateway says of itself, and what lies in its folder."""
    watcher = Client(Origin("127.0.0.1", port))
    page = (await (await watcher.request("GET", "/metrics")).read()).decode()
    watcher.close()
    names = ("process_resident_memory_bytes", "process_open_fds", "datahall_tasks", "datahall_open_requests")
    found = {line.split()[0]: line.split()[1] for line in page.splitlines() if line.startswith(names)}
    state_bytes = sum(path.stat().st_size for path in (folder / "state").iterdir() if path.is_file())
    memory_bytes, descriptors, tasks, open_requests = (float(found[name]) for name in names)
    return Held(at_s, requests, memory_bytes, descriptors, tasks, open_requests, state_bytes)


async def quiet(port: int, folder: Path, at_s: float, requests: int) -> Held:
    """What is held when nobody asks any more."""
    for _ in range(100):
        found = await held(port, folder, at_s, requests)
        if not found.open_requests:
            break
        await asyncio.sleep(0.1)
    return found


def billed(folder: Path) -> dict[str, float]:
    """The books, as a person asks for them."""
    command = [sys.executable, "-m", "datahall", "gateway", "bill", "--state", f"{folder}/state", "--json"]
    said = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    (row,) = next(table["rows"] for table in said["tables"] if table["title"] == "by model")
    return {**row, "num_unsettled": said["results"]["num_unsettled"]}


def report(work: Soak, samples: list[Held], rest: Held, bill: dict[str, float], is_ended: bool) -> bool:
    """Print what was held and what came of it; whether all was well."""
    print("   time  requests  memory  descriptors  tasks  open  ledger")
    for one in [*samples[:: NUM_SAMPLES // SHOWN], rest]:
        print(
            f"{one.at_s:6.0f} s  {one.requests:8,}  {one.memory_bytes / 1e6:3.0f} MB  {one.descriptors:11.0f}  "
            f"{one.tasks:5.0f}  {one.open_requests:4.0f}  {one.state_bytes / 1e6:3.0f} MB"
        )
    print()
    warm, last = samples[WARM:], samples[-1]
    first_quarter, last_quarter = warm[: len(warm) // 4], warm[-len(warm) // 4 :]
    half = len(samples) // 2
    due_usd = (work.prompt * INPUT_USD + work.completion * OUTPUT_USD) / 1e6
    lines = [
        *(Line(f"{kind}", num, "requests") for kind, num in work.ended.items()),
        Line("requests a second", last.requests / last.at_s, "/s"),
        Line("answers that nobody should have had", work.wrong.total(), "", 0.0),
        Line("memory, the most", most(samples, "memory_bytes") / 1e6, "MB", MOST_MEMORY_BYTES / 1e6),
        Line("memory, the most of the second half of that of the first",
             most(samples[half:], "memory_bytes") / most(samples[:half], "memory_bytes"), "times", MOST_GROWTH_RATIO),
        Line("descriptors, the most at the end of that at the beginning",
             most(last_quarter, "descriptors") / most(first_quarter, "descriptors"), "times", MOST_MORE_RATIO),
        Line("tasks, the most at the end of that at the beginning",
             most(last_quarter, "tasks") / most(first_quarter, "tasks"), "times", MOST_MORE_RATIO),
        Line("tasks when nobody asks", rest.tasks, "", IDLE_TASKS),
        Line("requests that are open when nobody asks", rest.open_requests, "", 0.0),
        Line("ledger on the disk", most(samples, "state_bytes") / 1e6, "MB", MOST_STATE_BYTES / 1e6),
        Line("requests in the books and those that were asked, apart", abs(bill["requests"] - work.num_turns), "", 0.0),
        Line("prompt tokens charged and delivered, apart", abs(bill["prompt_tokens"] - work.prompt), "", 0.0),
        Line("completion tokens charged and delivered, apart", abs(bill["completion_tokens"] - work.completion), "",
             0.0),
        Line("nano-dollars charged and due, apart", abs(round((bill["charged_usd"] - due_usd) * 1e9)), "", 0.0),
        Line("requests charged as they were held", bill["num_unsettled"], "", 0.0),
    ]  # fmt: skip
    print(printed(lines))
    for what, num in work.wrong.most_common(10):
        print(f"  {num} × {what}")
    print(f"\nload at the end {os.getloadavg()[0]:.1f}")
    return is_ended and not any(line.verdict.startswith("missed") for line in lines)


def most(samples: list[Held], name: str) -> float:
    return max(float(getattr(one, name)) for one in samples)


if __name__ == "__main__":
    sys.exit(not run(soak(float(sys.argv[1]) if len(sys.argv) > 1 else SOAK_S)))
