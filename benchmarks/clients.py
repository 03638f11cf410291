"""Clients on raw protocols, each with one request at a time; prints requests, tokens, median and 99th percentile."""

from __future__ import annotations

import asyncio
import sys
import time
from typing import cast

from datahall.serve.http import run
from datahall.serve.http.framing import LAST_CHUNK

PORT, CLIENTS, SPAN_S, MANNER, KEY = (
    int(sys.argv[1]),
    int(sys.argv[2]),
    float(sys.argv[3]),
    sys.argv[4],
    sys.argv[5],
)
STREAM = b',"stream":true' if MANNER == "stream" else b""
BODY = (
    b'{"model":"m","messages":[{"role":"user","content":"Tell me something about the weather in the north"}],'
    b'"max_tokens":200' + STREAM + b"}"
)
REQUEST = (
    b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %b\r\nAccept: */*\r\n"
    b"User-Agent: clients\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%b"
) % (KEY.encode(), len(BODY), BODY)

spans_s: list[float] = []
num_tokens = 0


class Client(asyncio.Protocol):
    """Asks again when it is answered, until the time is over."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        self.end_s = time.perf_counter() + SPAN_S
        self.ask()

    def ask(self) -> None:
        self.come = b""
        self.begun_s = time.perf_counter()
        self.transport.write(REQUEST)

    def data_received(self, data: bytes) -> None:
        global num_tokens
        self.come = (self.come + data) if not STREAM else (self.come[-8:] + data)
        if STREAM:
            num_tokens += data.count(b'"content"')
        if self.is_whole():
            assert STREAM or self.come.startswith(b"HTTP/1.1 200"), self.come
            now_s = time.perf_counter()
            spans_s.append(now_s - self.begun_s)
            if now_s < self.end_s:
                self.ask()

    def is_whole(self) -> bool:
        if STREAM:
            return self.come.endswith(LAST_CHUNK)
        head, found, body = self.come.partition(b"\r\n\r\n")
        if not found:
            return False
        return len(body) >= int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])


async def main() -> None:
    loop = asyncio.get_running_loop()
    for _ in range(CLIENTS):
        await loop.create_connection(Client, "127.0.0.1", PORT)
    await asyncio.sleep(SPAN_S + 0.2)
    spans_s.sort()
    at = [spans_s[int(len(spans_s) * share)] if spans_s else 0.0 for share in (0.5, 0.99)]
    print(len(spans_s), num_tokens, *at)


if __name__ == "__main__":
    run(main())
