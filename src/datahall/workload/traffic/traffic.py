"""Traffic: what a scenario says of its requests, and those requests."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import numpy as np

from datahall.breakdown import Source
from datahall.errors import ScenarioError
from datahall.events import stream
from datahall.workload.traffic.arrivals import Arrivals, arrival_times
from datahall.workload.traffic.conversation import (
    Begun,
    Conversation,
    Cut,
    Sessions,
    UnderWay,
    check_conversation,
    in_order,
    mean_session_tokens,
    resumed,
)
from datahall.workload.traffic.lengths import cut_to_context, quantile_tokens
from datahall.workload.traffic.recorded.replay import replay
from datahall.workload.traffic.recorded.trace_file import Trace, read_trace
from datahall.workload.traffic.requests import CHUNK_ROWS, Floats, Requests, in_chunks, join
from datahall.workload.traffic.room import check_room
from datahall.workload.traffic.shapes import Fixed, Lengths, check_lengths
from datahall.workload.traffic.sharing import reusable_tokens
from datahall.workload.traffic.users import Users

SHORT_FRACTION = 0.01  # of prompts, which must leave room for an answer, or there is nothing to serve


class TraceReplay(msgspec.Struct, frozen=True, kw_only=True):
    """A file of recorded requests, and how to play it."""

    path: str
    speed_ratio: float  # 2: twice the recorded rate
    sort: bool = False
    first: int  # only so many of its requests; 0: all
    block_tokens: int  # tokens of one of its hashes; 0: the format's

    def read(self) -> Trace:
        return read_trace(self.path, sort=self.sort, first=self.first, block_tokens=self.block_tokens)


class Traffic(msgspec.Struct, frozen=True, kw_only=True):
    """Requests of some lengths that come at a rate (arrivals), from users, or out of a recorded trace."""

    name: str = "custom"
    source: Source | None = None
    prompt: Lengths = Fixed(1000)  # whole prompt, or what a turn adds where there are turns
    output: Lengths = Fixed(250)
    arrivals: Arrivals | None = None
    users: Users | None = None
    trace: TraceReplay | None = None
    conversation: Conversation = Conversation()
    num_requests: int = 0  # 0: until the duration ends
    duration_s: float = 0.0  # 0: until the number of requests is reached
    max_context: int = 0  # of the model: longer requests are cut, and counted; 0: no limit

    def __post_init__(self) -> None:
        check_traffic(self)

    @property
    def shares_prefixes(self) -> bool:
        """Whether prompts may begin alike: those of a talk, of a system prompt, of documents, of a trace."""
        talk = self.conversation
        return bool(self.trace or talk.num_turns > 1 or talk.system_tokens or talk.num_documents)


def check_traffic(traffic: Traffic) -> None:
    """Raise where no run follows from the description."""
    said = [name for name in ("arrivals", "users", "trace") if getattr(traffic, name) is not None]
    if len(said) != 1:
        raise ScenarioError(
            f"traffic with {' and '.join(said) if said else 'neither a rate, nor users, nor a trace'}",
            where="traffic",
            hint="say one of: a rate of requests, a number of users, a trace file",
        )
    if min(traffic.num_requests, traffic.duration_s, traffic.max_context) < 0:
        raise ScenarioError(
            f"{traffic.num_requests} requests, {traffic.duration_s:g} s, a context of {traffic.max_context} tokens",
            where="traffic",
            hint="none of them is negative",
        )
    if traffic.trace is not None:
        return
    if not traffic.num_requests and not traffic.duration_s:
        raise ScenarioError(
            "traffic without an end", field="requests", hint="give a number of requests, or a duration"
        )
    check_lengths(traffic.prompt, "prompt")
    check_lengths(traffic.output, "output")
    check_conversation(traffic.conversation)
    if traffic.conversation.opening is not None:
        check_lengths(traffic.conversation.opening, "opening")
    _check_context(traffic)


def _check_context(traffic: Traffic) -> None:
    talk = traffic.conversation
    lengths = talk.opening or traffic.prompt
    check_room(
        traffic.max_context,
        isl=max(1, round(quantile_tokens(lengths, SHORT_FRACTION))),
        system=talk.system_tokens,
        document=talk.quoted_tokens,
        varied=not isinstance(lengths, Fixed),
    )


class TrafficStream:
    """The requests of a run, chunk by chunk; `cut` counts what did not fit the context, as far as it has run."""

    def __init__(
        self,
        traffic: Traffic,
        seed: int,
        chunk_rows: int = CHUNK_ROWS,
        under_way: UnderWay | None = None,
    ) -> None:
        if not 1 <= chunk_rows <= CHUNK_ROWS:
            raise ScenarioError(
                f"chunks of {chunk_rows} rows", where="chunk_rows", hint=f"1 to {CHUNK_ROWS:,}"
            )
        self.cut = Cut()
        self.num_failed = 0  # recorded requests without an answer, left out
        self.recorded_s = 0.0  # for how long a trace goes on; 0: all at one time, or none
        self.num_requests = 0
        parts = self._recorded(traffic) if traffic.trace else self._drawn(traffic, seed, under_way)
        self._chunks = in_chunks(parts, chunk_rows)

    def __iter__(self) -> Iterator[Requests]:
        return self

    def __next__(self) -> Requests:
        chunk = next(self._chunks)
        self.num_requests += len(chunk)
        return chunk

    def _drawn(self, traffic: Traffic, seed: int, under_way: UnderWay | None) -> Iterator[Requests]:
        sessions = Sessions(traffic.conversation, traffic.prompt, traffic.output, seed, traffic.max_context)
        self.cut = sessions.cut
        return _of_sessions(sessions, traffic, seed, under_way)

    def _recorded(self, traffic: Traffic) -> Iterator[Requests]:
        assert traffic.trace is not None
        trace = traffic.trace.read()
        self.num_failed, self.recorded_s = trace.num_failed, trace.duration_s
        replayed = replay(
            trace,
            speed_ratio=traffic.trace.speed_ratio,
            num=traffic.num_requests,
            duration_s=traffic.duration_s,
        )
        for chunk in replayed:
            prompt, output, num_prompts, num_outputs = cut_to_context(
                chunk.prompt, chunk.output, traffic.max_context
            )
            self.cut.num_prompts += num_prompts
            self.cut.num_outputs += num_outputs
            yield msgspec.structs.replace(chunk, prompt=prompt, output=output)


def _of_sessions(
    sessions: Sessions, traffic: Traffic, seed: int, under_way: UnderWay | None
) -> Iterator[Requests]:
    """So many sessions at a time that their turns fill one chunk, more or less."""
    endless = np.iinfo(np.int64).max
    most = endless if under_way else traffic.num_requests or endless
    step = max(1, int(CHUNK_ROWS / traffic.conversation.num_turns))
    for begun in _begun(traffic, seed, under_way):
        for place in range(0, begun.start_s.size, step):
            if sessions.num_rows >= most:
                return
            yield sessions.draw(begun.part(place, place + step), most - sessions.num_rows, under_way)


def _begun(traffic: Traffic, seed: int, under_way: UnderWay | None) -> Iterator[Begun]:
    """The sessions of a run; of a service that is under way also those that were open before, at the turn they are."""
    talk = traffic.conversation
    if under_way is None:
        return (Begun.new(start_s) for start_s in _starts(traffic, seed, traffic.num_requests))
    starts = _starts(traffic, seed, traffic.num_requests)
    random = stream(seed, "traffic", "under way")
    if traffic.users is not None:
        return _at_some_turn(traffic.users.num, starts, talk, under_way, random)
    assert traffic.arrivals is not None
    return in_order(
        starts, resumed(talk.think, under_way.stay_s, traffic.arrivals.rate_per_s, talk.num_turns, random)
    )


def _at_some_turn(
    num_users: int,
    starts: Iterator[Floats],
    talk: Conversation,
    under_way: UnderWay,
    random: np.random.Generator,
) -> Iterator[Begun]:
    """Each user begins at some turn of a session, later sessions at their first."""
    left = num_users
    for start_s in starts:
        num_past = random.geometric(1.0 / talk.num_turns, start_s.size).astype(np.int64) - 1
        num_past[left:] = 0
        yield Begun(start_s, num_past, under_way.stay_s + start_s)
        left = max(0, left - start_s.size)


def _starts(traffic: Traffic, seed: int, num: int) -> Iterator[Floats]:
    """When sessions begin: absolute in an open loop, the pause before each in a closed one."""
    if traffic.users is None:
        assert traffic.arrivals is not None
        return arrival_times(traffic.arrivals, seed, num, traffic.duration_s)
    return traffic.users.pauses(seed, num or traffic.users.most_sessions(traffic.duration_s))


def generate(
    traffic: Traffic, seed: int, chunk_rows: int = CHUNK_ROWS, *, under_way: UnderWay | None = None
) -> TrafficStream:
    """The requests of a run in chunks; the rows depend on the seed alone, not on the size of the chunks.

    Of a service that is under way conversations go on when a run begins, and when it ends: they are as many as it takes
    to meet as many requests as were asked for, whoever counts them.
    """
    return TrafficStream(traffic, seed, chunk_rows, under_way)


class TrafficFigures(msgspec.Struct, frozen=True, kw_only=True):
    """What traffic asks of a service."""

    mean_prompt_tokens: float
    mean_output_tokens: float
    rate_per_s: float  # requests, later turns included; users: if answers took no time
    prompt_tokens_per_s: float
    output_tokens_per_s: float
    reusable_fraction: float  # of prompt tokens, in a cache that forgets nothing
    cut_fraction: float  # of requests that were shortened to fit the context, or dropped
    num_sampled: int


def first_rows(drawn: TrafficStream, most_rows: int) -> Requests:
    """So many of the rows that come first."""
    chunks, num = [], 0
    for chunk in drawn:
        chunks.append(chunk.rows(0, most_rows - num))
        num += len(chunks[-1])
        if num >= most_rows:
            break
    return join(chunks)


def describe(traffic: Traffic, seed: int = 0, most_rows: int = CHUNK_ROWS) -> TrafficFigures:
    """Figures of the first rows of a run.

    Means before any cut have a closed form (`mean_session_tokens`); rows are drawn because what fits the context and
    what is reusable depends on the run: a group is reusable only once it was seen.
    """
    drawn = generate(traffic, seed)
    rows = first_rows(drawn, most_rows)
    num = len(rows)
    if not num:
        raise ScenarioError(
            "no request comes in the time given", field="duration", hint="a longer duration or a higher rate"
        )
    tokens = int(rows.prompt.sum())
    rate = _rate_per_s(traffic, rows)
    return TrafficFigures(
        mean_prompt_tokens=tokens / num,
        mean_output_tokens=float(rows.output.mean()),
        rate_per_s=rate,
        prompt_tokens_per_s=rate * tokens / num,
        output_tokens_per_s=rate * float(rows.output.mean()),
        reusable_fraction=float(reusable_tokens(rows).sum()) / tokens,
        cut_fraction=drawn.cut.fraction(drawn.num_requests),
        num_sampled=num,
    )


def _rate_per_s(traffic: Traffic, rows: Requests) -> float:
    turns = len(rows) / max(1, int(np.count_nonzero(rows.after < 0)))
    if traffic.arrivals is not None:
        return np.inf if traffic.arrivals.gaps == "at-once" else traffic.arrivals.rate_per_s * turns
    if traffic.users is not None:
        pause_s = float(rows.arrival_s.mean())
        return traffic.users.num / pause_s if pause_s else np.inf
    span_s = float(rows.arrival_s[rows.after < 0][-1])
    return len(rows) / span_s if span_s else np.inf


def expected_tokens(traffic: Traffic) -> tuple[float, float]:
    """Mean tokens of a whole prompt and of an answer in closed form, before any cut; not for a trace."""
    return mean_session_tokens(traffic.conversation, traffic.prompt, traffic.output)
