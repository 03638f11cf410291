"""Keys and books by commands of other processes, while a gateway runs."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

from tests.serve.e2e.processes import Process, gateway, upstream
from tests.serve.gateway.gateways import whole

from datahall.serve.http import run


async def keys(state: Path, *words: str) -> Any:
    """What `datahall gateway keys` answers."""
    command = (sys.executable, "-m", "datahall", "gateway", "keys", *words, "--state", str(state), "--json")
    process = await asyncio.create_subprocess_exec(*command, stdout=-1, stderr=-1)
    said, wrong = await process.communicate()
    assert process.returncode == 0, wrong
    return json.loads(said)


async def comes_to(status: int, front: Process, secret: str) -> None:
    """Ask until that is the answer; a commit later it is."""
    async with asyncio.timeout(5):
        while True:
            answer = await front.ask(secret)
            await answer.read()
            if answer.status == status:
                return
            await asyncio.sleep(0.02)


def test_a_gateway_sees_every_key_that_is_made_and_revoked_while_it_runs(tmp_path: Path) -> None:
    async def work() -> None:
        state = tmp_path / "state"
        async with upstream(whole) as (_, port), gateway(tmp_path, port) as front:
            secrets = {}
            for name in ("a", "b"):
                secrets[name] = (await keys(state, "create", "--name", name))["results"]["key"]
                await comes_to(200, front, secrets[name])
            await keys(state, "revoke", "a")
            await comes_to(401, front, secrets["a"])
            await comes_to(200, front, secrets["b"])
            async with asyncio.timeout(5):
                while True:
                    (table,) = (await keys(state, "list"))["tables"]
                    if {row["name"]: row["spent_usd"] for row in table["rows"]}["b"] > 0:
                        return

    run(work())
