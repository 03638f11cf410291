"""The columns of request traces as their publishers write them."""

from __future__ import annotations

import msgspec

Row = dict[str, object]


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
