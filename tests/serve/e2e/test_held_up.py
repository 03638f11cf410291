"""A process that somebody tries to hold up, by connections without a word and by a log that is not read."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path

from tests.serve.e2e.processes import gateway, upstream
from tests.serve.gateway.gateways import whole

from datahall.serve.http import run

NUM_FILES = 200
NUM_LINES = 2000  # more than the pipe and its reader's buffer take


def test_connections_without_a_word_keep_nobody_out(tmp_path: Path) -> None:
    async def work() -> None:
        async with upstream(whole) as (_, port), gateway(tmp_path, port, num_files=NUM_FILES) as front:
            silent = [await asyncio.open_connection("127.0.0.1", front.port) for _ in range(2 * NUM_FILES)]
            for _ in range(20):
                answers = await asyncio.gather(*(front.ask() for _ in range(10)))
                assert {answer.status for answer in answers} == {200}
            for _, writer in silent:
                writer.close()

    run(work())


def test_a_log_that_nobody_reads_does_not_hold_up_the_end(tmp_path: Path) -> None:
    async def work() -> None:
        log = '[telemetry]\nlog = "-"\n'
        async with upstream(whole) as (_, port), gateway(tmp_path, port, log) as front:
            for _ in range(NUM_LINES // 50):
                for answer in await asyncio.gather(*(front.ask() for _ in range(50))):
                    await answer.read()
            front.process.send_signal(signal.SIGTERM)
            async with asyncio.timeout(20):
                # what its pipe holds is not read before it has ended
                while front.process.returncode is None:
                    await asyncio.sleep(0.01)
            assert front.process.returncode == 0

    run(work())
