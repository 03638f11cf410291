"""`datahall serve` as a process of its own, before upstreams of the test."""

from __future__ import annotations

import asyncio
import re
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import msgspec
from tests.serve.gateway.gateways import Asked, Handler

from datahall.serve.http import Client, Origin, Response, serve


class Process:
    """A gateway that runs, where it listens, and its first key."""

    def __init__(self, process: asyncio.subprocess.Process, said: str) -> None:
        self.process = process
        found = re.match(
            r"http://127\.0\.0\.1:(\d+) answers for \S+\n(?:\S+:(\d+) is asked .*\n)?(?:key  (\S+) )?", said
        )
        assert found, said
        self.port = int(found[1])
        self.admin_port = int(found[2] or 0)
        self.secret = found[3] or ""
        self.client = Client(Origin("127.0.0.1", self.port))

    async def ask(self, secret: str = "", **fields: Any) -> Response:
        body = {"model": "m", "messages": [{"role": "user", "content": "Hello"}], "max_tokens": 20, **fields}
        headers = [("authorization", f"Bearer {secret or self.secret}")]
        return await self.client.request("POST", "/v1/chat/completions", msgspec.json.encode(body), headers)


@asynccontextmanager
async def upstream(handler: Handler) -> AsyncIterator[tuple[Asked, int]]:
    asked = Asked(handler)
    server = await serve(asked)
    try:
        yield asked, server.port
    finally:
        await server.close()


@asynccontextmanager
async def gateway(folder: Path, port: int, more: str = "", num_files: int = 0) -> AsyncIterator[Process]:
    """The command as a person types it, on a free port; killed at the end if it still runs."""
    file = folder / "gateway.toml"
    file.write_text(
        f'[server]\nlisten = "127.0.0.1:0"\nstate = "{folder / "state"}"\n'
        f'[upstream.u]\nurl = "http://127.0.0.1:{port}/v1"\n'
        f'[model.m]\nupstreams = ["u"]\nprice = {{ input = 1, output = 2 }}\n{more}'
    )
    async with started(file, num_files) as running:
        yield running


@asynccontextmanager
async def started(file: Path, num_files: int = 0, *options: str) -> AsyncIterator[Process]:
    """A gateway of a file, as soon as it has said where it listens."""
    limited = ("sh", "-c", f'ulimit -n {num_files} && exec "$@"', "sh") if num_files else ()
    process = await asyncio.create_subprocess_exec(
        *limited, sys.executable, "-m", "datahall", "serve", str(file), *options, stdout=-1, stderr=-1
    )
    assert process.stdout is not None
    said = b""
    async with asyncio.timeout(30):
        while b"\ncurl " not in said:
            line = await process.stdout.readline()
            if not line:
                assert process.stderr is not None
                raise AssertionError(said + await process.stderr.read())
            said += line
    running = Process(process, said.decode())
    try:
        yield running
    finally:
        running.client.close()
        with suppress(ProcessLookupError):
            process.kill()
        await process.communicate()
