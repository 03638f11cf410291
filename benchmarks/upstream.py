"""An upstream that costs next to nothing: one answer, or one stream at a rate, as bytes on a raw protocol."""

from __future__ import annotations

import asyncio
import sys
from typing import cast

from datahall.serve.http import run
from datahall.serve.http.framing import LAST_CHUNK, chunk

RATE, TOKENS = float(sys.argv[1]), int(sys.argv[2])
WORDS = b"word " * 60
BODY = (
    b'{"id":"1","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant",'
    b'"content":"'
    + WORDS
    + b'"},"finish_reason":"stop"}],"usage":{"prompt_tokens":9,"completion_tokens":60}}'
)
WHOLE = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%b" % (
    len(BODY),
    BODY,
)
HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
TOKEN = chunk(
    b'data: {"id":"1","object":"chat.completion.chunk","created":1,"model":"m",'
    b'"choices":[{"index":0,"delta":{"content":"word "},"finish_reason":null}]}\n\n'
)
USAGE = b'data: {"id":"1","choices":[],"usage":{"prompt_tokens":9,"completion_tokens":%d}}\n\n' % TOKENS
END = chunk(USAGE) + chunk(b"data: [DONE]\n\n") + LAST_CHUNK


def is_whole(head: bytes, body: bytes) -> bool:
    """Whether a body has come, by its length or in chunks."""
    _, found, rest = head.partition(b"content-length: ")
    if found:
        return len(body) >= int(rest.partition(b"\r\n")[0])
    return b"\r\ntransfer-encoding: chunked" not in head or body.endswith(LAST_CHUNK)


class Upstream(asyncio.Protocol):
    """Answers each request as soon as its body is there."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        self.loop = asyncio.get_running_loop()
        self.come = b""

    def data_received(self, data: bytes) -> None:
        self.come += data
        head, found, body = self.come.partition(b"\r\n\r\n")
        if not found or not is_whole(head.lower(), body):
            return
        self.come = b""
        if b'"stream":true' in body or b'"stream": true' in body:
            self.transport.write(HEAD)
            self.start_s = self.loop.time()
            self.token(0)
        else:
            self.transport.write(WHOLE)

    def token(self, number: int) -> None:
        if self.transport.is_closing():
            return
        if number == TOKENS:
            self.transport.write(END)
            return
        self.transport.write(TOKEN)
        if RATE:
            self.loop.call_at(self.start_s + (number + 1) / RATE, self.token, number + 1)
        else:
            self.token(number + 1)


async def main() -> None:
    server = await asyncio.get_running_loop().create_server(Upstream, "127.0.0.1", 0, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    run(main())
