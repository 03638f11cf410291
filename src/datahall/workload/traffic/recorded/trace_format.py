"""The columns of request traces as their publishers write them, and whether a file can be one at all."""

from __future__ import annotations

import codecs
import csv
from pathlib import Path

import msgspec

from datahall.errors import DocumentError, Problem

Row = dict[str, object]
HEAD = 1 << 16  # bytes of a file that are looked at before it is read


class TraceFormat(msgspec.Struct, frozen=True, kw_only=True):
    """Names of a format's columns; times in units of `time_s`."""

    name: str
    title: str
    time: str
    prompt: str
    output: str
    time_s: float = 1.0
    dates: bool = False  # times are dates: "2023-11-16 18:17:03.9799600"
    keys: str = ""  # lists of chained block keys
    block_tokens: int = 0
    session: str = ""


# Own columns first; a file is read as the first format of which it has time, prompt and output.
FORMATS = (
    TraceFormat(name="datahall", title="our own", time="arrival_s", prompt="prompt", output="output"),
    TraceFormat(
        name="azure",
        title="Azure LLM inference traces 2023 and 2024",
        time="TIMESTAMP",
        prompt="ContextTokens",
        output="GeneratedTokens",
        dates=True,
    ),
    TraceFormat(
        name="mooncake",
        title="Mooncake traces",
        time="timestamp",
        prompt="input_length",
        output="output_length",
        time_s=1e-3,
        keys="hash_ids",
        block_tokens=512,
    ),
    TraceFormat(
        name="burstgpt",
        title="BurstGPT traces",
        time="Timestamp",
        prompt="Request tokens",
        output="Response tokens",
    ),
    TraceFormat(
        name="vidur",
        title="Vidur traces",
        time="arrived_at",
        prompt="num_prefill_tokens",
        output="num_decode_tokens",
    ),
    *(
        TraceFormat(
            name="vllm",
            title="vLLM and ShareGPT-like lists of requests",
            time=time,
            prompt=prompt,
            output=output,
        )
        for time in ("arrival", "arrival_time", "timestamp_s")
        for prompt, output in (
            ("prompt_tokens", "output_tokens"),
            ("prompt_tokens", "completion_tokens"),
            ("prompt_len", "output_len"),
            ("input_tokens", "output_tokens"),
        )
    ),
)


def recognise(columns: list[str]) -> TraceFormat | None:
    """The format with these columns, or None."""
    have = set(columns)
    return next((known for known in FORMATS if {known.time, known.prompt, known.output} <= have), None)


def known_columns() -> str:
    """One example of each format, for an error."""
    examples = {known.name: f"{known.time}, {known.prompt}, {known.output}" for known in reversed(FORMATS)}
    return "; ".join(f"{name}: {columns}" for name, columns in reversed(examples.items()))


def check_head(path: str) -> None:
    """Refuse what cannot be a trace by its first lines: no text, nothing in it, or columns that nobody has."""
    try:
        with Path(path).open("rb") as file:
            text = decoded(path, file.read(HEAD), whole=False)
    except OSError as error:
        raise unreadable(path, error.strerror or str(error)) from error
    first = next(line for line in text.splitlines() if line.strip())
    if first.lstrip().startswith("{"):
        return  # a row, which says what it has, and may be longer than what was looked at
    columns = [column.strip() for column in next(csv.reader([first]))]
    if recognise(columns) is None:
        raise unknown_columns(path, columns)


def decoded(path: str, content: bytes, *, whole: bool = True) -> str:
    """The text of a file, or of its beginning; nothing at all is a `DocumentError`."""
    try:
        text = codecs.getincrementaldecoder("utf-8-sig")().decode(content, final=whole)
    except UnicodeDecodeError as error:
        raise unreadable(path, f"not UTF-8 text: {error.reason}") from error
    if not text.strip():
        raise DocumentError(path, [Problem(f"{path}:1", "the file is empty", known_columns())])
    return text


def unreadable(path: str, why: str) -> DocumentError:
    """A file that is no text."""
    return DocumentError(path, [Problem(path, f"cannot be read: {why}")])


def unknown_columns(path: str, columns: list[str]) -> DocumentError:
    """A file with columns that no format has."""
    problem = Problem(f"{path}:1", f"columns {', '.join(columns)} are of no known trace", known_columns())
    return DocumentError(path, [problem])
