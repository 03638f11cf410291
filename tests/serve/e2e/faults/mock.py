"""An upstream as a process that keeps books of its own: every request is answered as its prompt says.

    python mock.py BOOK [UP DOWN]

A line of the book is a request, what came of it, and how many tokens; it outlives the process.  With UP and DOWN, so
many requests are answered, so many broken off, and so on.  A prompt is as long as a gateway takes one to be that
nobody has counted, so that what is told and what is counted are the same number.
"""

from __future__ import annotations

import asyncio
import os
import sys
from typing import Any

import msgspec

from datahall.serve.http import Exchange, run, serve

BYTES_PER_TOKEN = 3


class Plan(msgspec.Struct, frozen=True):
    """How a request is answered."""

    tokens: int = 3
    first_s: float = 0.0  # before anything is said
    every_s: float = 0.0  # between two tokens
    then: str = "end"  # or wait, for good


class Asked(msgspec.Struct):
    """What of a body concerns us."""

    messages: msgspec.Raw
    stream: bool = False


class Mock:
    """Answers, and writes down that it has."""

    def __init__(self, book: str, up: int, down: int) -> None:
        self._book = os.open(book, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self._up, self._down = up, down
        self._num = 0

    async def __call__(self, exchange: Exchange) -> None:
        number, self._num = self._num, self._num + 1
        asked = msgspec.json.decode(exchange.request.body, type=Asked)
        plan = plan_of(msgspec.json.decode(asked.messages)[-1]["content"])
        prompt = len(memoryview(asked.messages)) // BYTES_PER_TOKEN + 1
        self._write(number, "asked", prompt)
        if self._down and number % (self._up + self._down) >= self._up:
            self._write(number, "broken")
            exchange.abort()
            return
        exchange.on_gone(lambda: self._write(number, "left"))
        if plan.first_s:
            await asyncio.sleep(plan.first_s)
        if asked.stream:
            await self._stream(exchange, number, plan, prompt)
        else:
            await self._whole(exchange, number, plan, prompt)

    async def _whole(self, exchange: Exchange, number: int, plan: Plan, prompt: int) -> None:
        if plan.then == "wait":
            await asyncio.sleep(3600)
        message = {"role": "assistant", "content": "word " * plan.tokens}
        exchange.send(200, encoded(choices=[{"index": 0, "message": message}], usage=usage(prompt, plan)))
        self._write(number, "said", plan.tokens)

    async def _stream(self, exchange: Exchange, number: int, plan: Plan, prompt: int) -> None:
        exchange.start(200)
        for _ in range(plan.tokens):
            exchange.write(event(choices=[{"index": 0, "delta": {"content": "word"}}]))
            self._write(number, "said", 1)
            await asyncio.sleep(plan.every_s)
        if plan.then == "wait":
            await asyncio.sleep(3600)
        exchange.write(event(choices=[{"index": 0, "delta": {}, "finish_reason": "stop"}]))
        exchange.write(event(choices=[], usage=usage(prompt, plan)) + b"data: [DONE]\n\n")
        exchange.end()

    def _write(self, number: int, what: str, tokens: int = 0) -> None:
        os.write(self._book, f"{number} {what} {tokens}\n".encode())


def plan_of(prompt: str) -> Plan:
    """What a prompt asks for; one that is no plan is answered as usual."""
    try:
        return msgspec.json.decode(prompt, type=Plan)
    except msgspec.DecodeError:
        return Plan()


def usage(prompt: int, plan: Plan) -> dict[str, int]:
    return {"prompt_tokens": prompt, "completion_tokens": plan.tokens, "total_tokens": prompt + plan.tokens}


def encoded(**fields: Any) -> bytes:
    return msgspec.json.encode(fields)


def event(**fields: Any) -> bytes:
    return b"data: " + encoded(**fields) + b"\n\n"


async def main(book: str, up: int = 0, down: int = 0) -> None:
    server = await serve(Mock(book, up, down))
    print(server.port, flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    run(main(sys.argv[1], *map(int, sys.argv[2:])))
