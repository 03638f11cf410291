"""Looks at a gateway now and again."""

from __future__ import annotations

import asyncio
import time
from collections import deque

import msgspec

from datahall.errors import ServingError
from datahall.serve.http import Client, Failure, Origin, Timeouts, run
from datahall.serve.top.moment import Moment, between
from datahall.serve.top.page import read_page
from datahall.serve.top.reading import Reading, reading_of

TIMEOUTS = Timeouts(connect_s=3.0, first_byte_s=3.0, between_s=3.0, total_s=6.0)
MOST_BYTES = 16_000_000
IS_IT_RUNNING = (
    "is it running, and is the URL right? Away from loopback: the address of metrics in [telemetry]"
)


class Watch:
    """The last looks at one gateway; one that was started again is looked at anew."""

    def __init__(self, url: str, key: str = "", window_s: float = 1.0) -> None:
        origin = Origin.of(url)
        base = origin.base.removesuffix("/metrics").removesuffix("/v1")
        self._origin = msgspec.structs.replace(origin, base=base)
        self._headers = (("authorization", f"Bearer {key}"),) if key else ()
        self._window_s = window_s
        self._looks: deque[Reading] = deque()

    @property
    def authority(self) -> str:
        return self._origin.socket or self._origin.authority

    def look(self) -> None:
        """Look once more."""
        self._keep(run(self._read()))

    def moment(self) -> Moment | None:
        """What happened within the window; nothing before a second look."""
        if len(self._looks) < 2:
            return None
        return between(self._looks[0], self._looks[-1], time.time())

    def pause(self, pause_s: float) -> None:
        """Wait before the next look."""
        time.sleep(pause_s)

    def _keep(self, found: Reading) -> None:
        if self._looks and self._looks[-1].began_s != found.began_s:
            self._looks.clear()
        self._looks.append(found)
        while len(self._looks) > 2 and found.at_s - self._looks[1].at_s >= self._window_s:
            self._looks.popleft()

    async def _read(self) -> Reading:
        client = Client(self._origin, TIMEOUTS)
        try:
            async with asyncio.timeout(TIMEOUTS.total_s):
                answer = await client.request("GET", "/metrics", headers=self._headers)
                body = await answer.read(MOST_BYTES)
        except (Failure, TimeoutError) as failure:
            why = str(failure) or f"{self.authority} took more than {TIMEOUTS.total_s:g} s"
            raise ServingError(why, hint=IS_IT_RUNNING) from None
        finally:
            client.close()
        if answer.status in (401, 403):
            raise ServingError(
                f"{self.authority}/metrics answers {answer.status}: not with this key",
                field="key_from",
                hint="the key that whoever stands before the gateway asks for",
            )
        found = reading_of(read_page(body.decode("utf-8", "replace")), time.monotonic())
        if answer.status != 200 or found is None:
            what = f"answers {answer.status}" if answer.status != 200 else "has no metrics of a gateway"
            raise ServingError(f"{self.authority}/metrics {what}", hint=IS_IT_RUNNING)
        return found
