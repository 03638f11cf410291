"""The gateway with all of it on, before one upstream: requests, streams, the cache, and what it takes to stand there.

Upstream and clients are processes of their own, raw protocols that are never the limit.  CPU time is of the gateway's
process alone, so that figures hold on a machine that has other work; rates a core are its inverse.  LiteLLM is measured
in the same run where `make bench-peers` has installed it; figures of others are as recorded on 2026-11-15 on a machine
of this kind, one core for the server, the same answers.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from litellm_peer import KEY, PROGRAM, litellm
from table import Line

from datahall.serve.http import Client, Exchange, Origin, Response, run, serve

HERE = Path(__file__).parent
LITELLM_HIT_PER_S = 99.0
ROUTER_CPU_S = 0.103e-3  # vLLM Router 0.1.16, in Rust
CLIENTS, STREAMS, TOKENS, TOKENS_PER_S = 64, 200, 150, 50
PEER_STREAMS = 8  # more saturate its core
MEASURED_S, FAULTS = 4.0, 50
TICK_S = 1 / os.sysconf("SC_CLK_TCK")


class Peer(NamedTuple):
    """What LiteLLM's proxy takes."""

    cpu_s: float = 12.9e-3  # of a request, 64 clients
    token_s: float = 1_380e-6  # of a streamed token
    start_s: float = 8.9
    added_p50_s: float = 13.3e-3  # one client
    when: str = "as recorded"


class Load(NamedTuple):
    """What clients saw, and what the gateway spent meanwhile."""

    num_requests: int
    num_tokens: int
    p50_s: float
    p99_s: float
    cpu_s: float


def gateway_lines() -> list[Line]:
    """Ours, beside others as recorded and an upstream that is asked directly."""
    with upstream() as port:
        direct = loaded(None, port, 1, "whole", "")
        with gateway(port) as (process, front, key, start_s):
            alone = loaded(process, front, 1, "whole", key)
            many = loaded(process, front, CLIENTS, "whole", key)
            memory_bytes = resident_bytes(process)
        with gateway(port, '[cache]\nsize = "64 MB"\n') as (process, front, key, _):
            hits = loaded(process, front, CLIENTS, "whole", key)
    with upstream(TOKENS_PER_S, TOKENS) as port, gateway(port) as (process, front, key, _):
        streams = loaded(process, front, STREAMS, "stream", key)
    peer = measured_peer() if PROGRAM.exists() else Peer()
    told_s, asked_ratio = run(faults())
    request_s = many.cpu_s / many.num_requests
    token_s = streams.cpu_s / streams.num_tokens
    hit_s = hits.cpu_s / hits.num_requests
    return [
        Line(f"gateway: CPU a request, {CLIENTS} clients", request_s, "s", 0.1e-3),
        Line("  requests a core and second", 1 / request_s, "/s", 4_600.0, True),
        Line("  requests/s as measured here, beside other work", many.num_requests / MEASURED_S, "/s"),
        Line(f"  against LiteLLM {peer.when}", peer.cpu_s / request_s, "× its rate", 60.0, True),
        Line("  against vLLM Router as recorded", ROUTER_CPU_S / request_s, "× its rate"),
        Line("  added to the median, one client", alone.p50_s - direct.p50_s, "s", 0.5e-3),
        Line(
            f"    LiteLLM {peer.when}", peer.added_p50_s / max(alone.p50_s - direct.p50_s, 1e-6), "× as much"
        ),
        Line("  added to the 99th percentile, one client", alone.p99_s - direct.p99_s, "s", 3e-3),
        Line(f"gateway: CPU a streamed token, {STREAMS} streams of 50 a second", token_s * 1e6, "µs", 50.0),
        Line("  such streams a core", 1 / (token_s * TOKENS_PER_S), "/s", 400.0, True),
        Line(f"  against LiteLLM {peer.when}", peer.token_s / token_s, "× fewer"),
        Line("gateway: hits of the cache a core and second", 1 / hit_s, "/s", 10_000.0, True),
        Line("  against LiteLLM as recorded", 1 / hit_s / LITELLM_HIT_PER_S, "× its rate"),
        Line("gateway: from the command to the first request", start_s, "s", 0.7),
        Line(f"  against LiteLLM {peer.when}", peer.start_s / start_s, "× sooner"),
        Line("gateway: memory under load", memory_bytes / 1e6, "MB", 100.0),
        Line(f"gateway: a client leaves, until its upstream hears it, worst of {FAULTS}", told_s, "s", 0.1),
        Line(
            "gateway: calls of an upstream of which a third fail, for each of a client", asked_ratio, "", 1.1
        ),
    ]


def measured_peer() -> Peer:
    """LiteLLM on the core that the gateway had, before the same upstream, asked by the same clients."""
    with upstream() as port:
        direct = loaded(None, port, 1, "whole", "")
        with litellm(port) as (process, front, start_s):
            loaded(process, front, 1, "whole", KEY)  # its first requests are slower
            alone = loaded(process, front, 1, "whole", KEY)
            many = loaded(process, front, CLIENTS, "whole", KEY)
    with upstream(TOKENS_PER_S, TOKENS) as port, litellm(port) as (process, front, _):
        streams = loaded(process, front, PEER_STREAMS, "stream", KEY)
    return Peer(
        cpu_s=many.cpu_s / many.num_requests,
        token_s=streams.cpu_s / streams.num_tokens,
        start_s=start_s,
        added_p50_s=alone.p50_s - direct.p50_s,
        when="in this run",
    )


async def faults() -> tuple[float, float]:
    """How long an upstream goes on for a client that has left, and how often one of which a third fail is asked."""
    asked, heard = asyncio.Event(), asyncio.Event()
    num_asked = 0

    async def answer(exchange: Exchange) -> None:
        nonlocal num_asked
        if b"fail" in exchange.request.body:
            num_asked += 1
            exchange.send(*((500,) if num_asked % 3 == 0 else (200, b"{}")))
            return
        exchange.on_gone(heard.set)
        asked.set()
        await asyncio.sleep(60)

    server = await serve(answer)
    worst_s = 0.0
    with gateway(server.port, "retries = 5\n") as (_, port, key, _):
        client = Client(Origin("127.0.0.1", port))

        def request(word: str) -> Coroutine[Any, Any, Response]:
            body = f'{{"model":"m","messages":[{{"role":"user","content":"{word}"}}]}}'.encode()
            return client.request("POST", "/v1/chat/completions", body, [("authorization", f"Bearer {key}")])

        for _ in range(FAULTS):
            asked.clear()
            heard.clear()
            asking = asyncio.ensure_future(request("wait"))
            await asked.wait()
            begun_s = time.perf_counter()
            asking.cancel()
            await heard.wait()
            worst_s = max(worst_s, time.perf_counter() - begun_s)
        for _ in range(10 * FAULTS):
            await (await request("fail")).read()
        client.close()
    await server.close()
    return worst_s, num_asked / (10 * FAULTS)


@contextmanager
def upstream(rate: float = 0.0, tokens: int = 32) -> Iterator[int]:
    """A server that says the same to everybody."""
    command = [sys.executable, str(HERE / "upstream.py"), str(rate), str(tokens)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield int(process.stdout.readline())
        finally:
            process.kill()


@contextmanager
def gateway(port: int, more: str = "") -> Iterator[tuple[subprocess.Popen[str], int, str, float]]:
    """`datahall serve`, on one core where there are more: its process, port, key and how long it took to begin."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "gateway.toml"
        file.write_text(
            f'[server]\nlisten = "127.0.0.1:0"\nstate = "{folder}/state"\n'
            f'[upstream.u]\nurl = "http://127.0.0.1:{port}/v1"\n'
            f'[model.m]\nupstreams = ["u"]\nprice = {{ input = 0.15, output = 0.60 }}\n{more}'
        )
        began_s = time.perf_counter()
        command = [sys.executable, "-m", "datahall", "serve", str(file)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            url = process.stdout.readline().split()[0]
            start_s = time.perf_counter() - began_s
            key = process.stdout.readline().split()[1]
            if hasattr(os, "sched_setaffinity"):
                os.sched_setaffinity(process.pid, {min(os.sched_getaffinity(0))})
            try:
                yield process, int(url.rpartition(":")[2]), key, start_s
            finally:
                process.send_signal(signal.SIGTERM)


def loaded(process: subprocess.Popen[str] | None, port: int, clients: int, manner: str, key: str) -> Load:
    """Clients that each send their next request when the last is answered."""
    command = [
        sys.executable,
        str(HERE / "clients.py"),
        str(port),
        str(clients),
        str(MEASURED_S),
        manner,
        key,
    ]
    before_s = 0.0 if process is None else cpu_s(process)
    said = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    after_s = 0.0 if process is None else cpu_s(process)
    return Load(int(said[0]), int(said[1]), float(said[2]), float(said[3]), after_s - before_s)


def cpu_s(process: subprocess.Popen[str]) -> float:
    fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) * TICK_S


def resident_bytes(process: subprocess.Popen[str]) -> int:
    return int(Path(f"/proc/{process.pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
