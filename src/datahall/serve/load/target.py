"""Who is loaded: an endpoint that speaks OpenAI's chat, asked for a stream, and when each piece of it came."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from datahall.errors import ServingError
from datahall.serve.http import Client, Failure, Origin, Timeouts
from datahall.serve.http.sse import Events, data_of

PATIENT = Timeouts(connect_s=10.0, first_byte_s=3600.0, between_s=600.0, total_s=86400.0)
SHOWN_BYTES = 200  # of an answer that is no stream
ABSENT = -1.0


class Sample(msgspec.Struct, kw_only=True):
    """One request: when it was due and sent, and when its tokens came; times since the start of the load."""

    row: int
    due_s: float
    sent_s: float = ABSENT
    first_s: float = ABSENT
    end_s: float = ABSENT
    gaps_s: list[float] = []  # between pieces that have text
    prompt: int = 0  # tokens, as the endpoint counts them, or as was asked where it does not
    output: int = 0
    is_counted: bool = False  # the endpoint has said how many tokens there were
    is_kept: bool = False  # given again by a cache of answers
    error: str = ""


class _Delta(msgspec.Struct, frozen=True):
    content: str | None = None
    reasoning_content: str | None = None


class _Choice(msgspec.Struct, frozen=True):
    delta: _Delta = _Delta()


class _Usage(msgspec.Struct, frozen=True):
    prompt_tokens: int = 0
    completion_tokens: int = 0


class _Chunk(msgspec.Struct, frozen=True):
    choices: list[_Choice] = []
    usage: _Usage | None = None
    error: dict[str, Any] | None = None


_CHUNKS = msgspec.json.Decoder(_Chunk)


class Target:
    """An endpoint, and the model of it that is asked."""

    def __init__(self, url: str, key: str = "", model: str = "") -> None:
        origin = Origin.of(url)
        self.client = Client(msgspec.structs.replace(origin, base=origin.base.removesuffix("/v1")), PATIENT)
        self._headers = (("content-type", "application/json"), ("cache-control", "no-store")) + (
            (("authorization", f"Bearer {key}"),) if key else ()
        )
        self.model = model

    async def find_model(self) -> None:
        """Take the first model that the endpoint lists, where none was named."""
        if self.model:
            return
        try:
            answer = await self.client.request("GET", "/v1/models", headers=self._headers)
            body = await answer.read()
        except Failure as failure:
            raise ServingError(str(failure), hint="is it running, and is the URL right?") from None
        if answer.status != 200:
            raise ServingError(f"/v1/models answers {answer.status}: {_shown(body)}")
        try:
            self.model = str(msgspec.json.decode(body)["data"][0]["id"])
        except (msgspec.DecodeError, KeyError, IndexError, TypeError):
            raise ServingError(f"/v1/models lists no model: {_shown(body)}") from None

    def body(self, text: str, output: int) -> bytes:
        """A request for so many tokens, neither more nor, of engines that can be told, fewer."""
        return msgspec.json.encode(
            {
                "model": self.model,
                "messages": [{"role": "user", "content": text}],
                "max_tokens": output,
                "ignore_eos": True,
                "stream": True,
                "stream_options": {"include_usage": True},
            }
        )

    async def ask(self, sample: Sample, body: bytes, now_s: Callable[[], float]) -> None:
        """Send a request and hear it out; what goes wrong is written into its sample."""
        sample.sent_s = now_s()
        try:
            answer = await self.client.request("POST", "/v1/chat/completions", body, self._headers)
            if answer.status != 200:
                sample.error = f"{answer.status}: {_shown(await answer.read())}"
            else:
                sample.is_kept = answer.headers.get("x-cache") == "hit"
                events, last_s = Events(), ABSENT
                try:
                    while piece := await answer.piece():
                        last_s = _hear(sample, events.feed(piece), now_s(), last_s)
                finally:
                    answer.close()
                if not sample.error and sample.first_s < 0.0:
                    sample.error = "an answer without a token"
        except Failure as failure:
            sample.error = str(failure)
        except msgspec.DecodeError as error:
            sample.error = f"no stream of chat: {error}"
        if sample.error:
            sample.end_s = now_s()


def _hear(sample: Sample, blocks: list[bytes], at_s: float, last_s: float) -> float:
    """Write down what came at one moment; returns when the last token came."""
    for block in blocks:
        data = data_of(block)
        if not data or data == b"[DONE]":
            continue
        chunk = _CHUNKS.decode(data)
        if chunk.error is not None:
            sample.error = str(chunk.error.get("message") or "an error within the stream")
        if chunk.usage is not None:
            sample.is_counted = True
            sample.prompt, sample.output = chunk.usage.prompt_tokens, chunk.usage.completion_tokens
        if not any(one.delta.content or one.delta.reasoning_content for one in chunk.choices):
            continue
        if last_s < 0.0:
            sample.first_s = at_s
        else:
            sample.gaps_s.append(at_s - last_s)
        last_s = sample.end_s = at_s
    return last_s


def _shown(body: bytes) -> str:
    return body[:SHOWN_BYTES].decode("utf-8", "replace")
