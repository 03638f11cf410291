"""An answer that came whole is a stream, and a stream a whole answer, that says the same."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from openai.lib.streaming.chat import ChatCompletionStreamState
from openai.types.chat import ChatCompletion, ChatCompletionChunk
from tests.serve.cache.answers import (
    CHAT,
    DONE,
    MESSAGE,
    STREAM,
    TEXT,
    USAGE,
    USED,
    WHOLE,
    delta,
    json,
)

from datahall.serve.cache.kept import kept_stream, kept_whole
from datahall.serve.http.sse import data_of


def read(text: bytes) -> object:
    return msgspec.json.decode(text)


def chunks(stream: bytes) -> list[bytes]:
    return [data_of(event) for event in stream.split(b"\n\n") if event]


@pytest.mark.parametrize("route", WHOLE)
def test_a_whole_answer_as_a_stream_is_the_same_answer(route: str) -> None:
    first = kept_whole("acme", route, USAGE, json(WHOLE[route]))
    again = kept_stream("acme", route, USAGE, first.stream(with_usage=True))
    assert again is not None
    assert read(again.whole()) == WHOLE[route]


def test_a_stream_is_given_again_as_it_came_and_whole() -> None:
    kept = kept_stream("acme", "chat", USAGE, STREAM)
    assert kept is not None
    assert kept.stream(with_usage=True) == STREAM
    assert kept.stream(with_usage=False) == STREAM.replace(USED, b"")
    assert read(kept.whole()) == CHAT


def test_who_asks_for_usage_is_told_it_though_the_first_did_not_ask() -> None:
    kept = kept_stream("acme", "chat", USAGE, STREAM.replace(USED, b""))
    assert kept is not None
    *_, said, done = chunks(kept.stream(with_usage=True))
    assert done == b"[DONE]"
    usage = ChatCompletionChunk.model_validate_json(said).usage
    assert usage is not None
    assert (usage.prompt_tokens, usage.completion_tokens, usage.total_tokens) == (9, 2, 11)
    assert kept.stream(with_usage=False) == STREAM.replace(USED, b"")


def call(index: int, arguments: str, **fields: object) -> dict[str, object]:
    return {"index": index, "function": {"arguments": arguments, **fields}}


TOOLS = (
    delta(role="assistant", content=None)
    + delta(tool_calls=[{"id": "call_1", "type": "function", **call(0, "", name="weather")}])
    + delta(tool_calls=[call(0, '{"city":')])
    + delta(tool_calls=[{"id": "call_2", "type": "function", **call(1, "{", name="time")}])
    + delta(tool_calls=[call(0, '"Paris"}')])
    + delta(tool_calls=[call(1, "}")])
    + delta("tool_calls")
    + DONE
)
SEVERAL = (
    delta(role="assistant", content="b")
    + delta(role="assistant", content="a", index=1)
    + delta("stop", content="c", index=1)
    + delta("length", content="d")
    + USED
    + DONE
)


@pytest.mark.parametrize("stream", [STREAM, TOOLS, SEVERAL])
def test_chunks_make_the_message_that_the_client_of_openai_makes_of_them(stream: bytes) -> None:
    state = ChatCompletionStreamState()
    for data in chunks(stream)[:-1]:
        state.handle_chunk(ChatCompletionChunk.model_validate_json(data))
    theirs = state.current_completion_snapshot
    kept = kept_stream("acme", "chat", USAGE, stream)
    assert kept is not None
    ours = ChatCompletion.model_validate_json(kept.whole())

    def said(answer: ChatCompletion) -> list[object]:
        return [
            (
                choice.index,
                choice.message.content,
                choice.finish_reason,
                [
                    (one.id, one.function.name, one.function.arguments)  # type: ignore[union-attr]
                    for one in choice.message.tool_calls or ()
                ],
            )
            for choice in sorted(answer.choices, key=lambda one: one.index)
        ]

    assert said(ours) == said(theirs)  # type: ignore[arg-type]
    assert ours.usage == theirs.usage or (stream is TOOLS and theirs.usage is None)


texts = st.text(max_size=20)
calls = st.lists(st.tuples(texts, texts), max_size=3)
messages = st.lists(
    st.tuples(texts, calls, st.sampled_from(("stop", "length", "tool_calls"))), min_size=1, max_size=3
)


@given(messages)
def test_messages_of_any_content_come_back(
    said: list[tuple[str, list[tuple[str, str]], str]],
) -> None:
    choices = []
    for index, (content, functions, finish) in enumerate(said):
        message: dict[str, object] = {"role": "assistant", "content": content}
        if functions:
            message["tool_calls"] = [
                {
                    "id": f"call_{place}",
                    "type": "function",
                    "function": {"name": name, "arguments": arguments},
                }
                for place, (name, arguments) in enumerate(functions)
            ]
        choices.append({"index": index, "message": message, "logprobs": None, "finish_reason": finish})
    answer = {**CHAT, "choices": choices}
    first = kept_whole("acme", "chat", USAGE, json(answer))
    again = kept_stream("acme", "chat", USAGE, first.stream(with_usage=True))
    assert again is not None
    assert read(again.whole()) == answer


@pytest.mark.parametrize(
    "stream",
    [
        STREAM.replace(DONE, b""),
        STREAM[: len(STREAM) // 2],
        delta(role="assistant", content="Par") + DONE,
        delta(content="Par") + b'data: {"error": {"message": "gone"}}\n\n' + DONE,
        delta("stop", content="Par") + b'data: {"error": {"message": "gone"}}\n\n' + DONE,
        b"data: {\n\n" + DONE,
        DONE,
        b"",
        delta("stop", content="a") + delta(content="b", index=1) + DONE,
    ],
)
def test_a_stream_that_is_not_a_whole_answer_is_not_kept(stream: bytes) -> None:
    assert kept_stream("acme", "chat", USAGE, stream) is None


def test_a_route_without_streams_keeps_none() -> None:
    assert kept_stream("acme", "embeddings", USAGE, STREAM) is None
    assert kept_whole("acme", "embeddings", USAGE, b"{}").whole() == b"{}"


def test_lines_that_end_as_in_http_are_the_same_stream() -> None:
    kept = kept_stream("acme", "chat", USAGE, STREAM.replace(b"\n", b"\r\n"))
    assert kept is not None
    assert kept.stream(with_usage=True) == STREAM


def test_what_models_think_is_kept_with_what_they_say() -> None:
    stream = (
        delta(role="assistant", reasoning_content="Hm")
        + delta(reasoning_content="m.")
        + delta("stop", content="A")
        + DONE
    )
    kept = kept_stream("acme", "chat", USAGE, stream)
    assert kept is not None
    answer = read(kept.whole())
    assert isinstance(answer, dict)
    assert answer["choices"][0]["message"] == {
        "role": "assistant",
        "content": "A",
        "reasoning_content": "Hmm.",
    }


def test_a_message_of_anthropic_names_its_events() -> None:
    stream = kept_whole("acme", "messages", USAGE, json(MESSAGE)).stream(with_usage=False)
    names = [line[7:] for line in stream.splitlines() if line.startswith(b"event: ")]
    block = [b"content_block_start", b"content_block_delta", b"content_block_stop"]
    assert names == [b"message_start", *block, *block, b"message_delta", b"message_stop"]


def test_a_text_is_one_chunk_and_usage_another() -> None:
    stream = kept_whole("acme", "completions", USAGE, json(TEXT)).stream(with_usage=True)
    first, used, done = chunks(stream)
    assert b'" Paris."' in first
    assert b'"choices":[]' in used
    assert done == b"[DONE]"
