"""Conversations: turns whose prompts grow by their history, over system prompts and documents that others share too."""

from __future__ import annotations

from collections.abc import Iterator
from math import inf
from typing import NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from datahall.errors import ScenarioError
from datahall.events import stream
from datahall.workload.traffic.lengths import Draw, cut_to_context, mean_tokens, sampler
from datahall.workload.traffic.popularity import draw_ranks
from datahall.workload.traffic.requests import CHUNK_ROWS, Floats, Ints, Requests
from datahall.workload.traffic.shapes import MOST_TURNS, Lengths

NO_LONGER = 12.0  # e-folds of a tail


class Think(msgspec.Struct, frozen=True, kw_only=True):
    """The pause of a person, or a tool, between an answer and the next question: gamma, exponential at a ratio of 1."""

    mean_s: float = 0.0
    variation_ratio: float = 1.0

    def draw(self, random: np.random.Generator, size: int) -> Floats:
        """So many pauses [s]."""
        if self.mean_s == 0 or self.variation_ratio == 0:
            return np.full(size, self.mean_s)
        shape = 1.0 / self.variation_ratio**2
        return random.standard_gamma(shape, size) * (self.mean_s / shape)

    def sums(self, random: np.random.Generator, num: Ints) -> Floats:
        """So many pauses each, added up [s]."""
        if self.mean_s == 0 or self.variation_ratio == 0:
            return np.asarray(num * self.mean_s, np.float64)
        shape = 1.0 / self.variation_ratio**2
        return np.asarray(random.standard_gamma(num * shape) * (self.mean_s / shape), np.float64)

    @property
    def longest_s(self) -> float:
        """A pause that hardly any is longer than: the tail of a gamma falls by e every mean · ratio² [s]."""
        return self.mean_s * (1.0 + NO_LONGER * self.variation_ratio + NO_LONGER * self.variation_ratio**2)


class Conversation(msgspec.Struct, frozen=True, kw_only=True):
    """How the requests of one session hang together, and what sessions share.

    With several turns the lengths of prompts are those of the new text of a turn; system prompt, documents and
    history come on top.
    """

    num_turns: float = 1.0  # mean turns of a session; geometric, at least 1
    think: Think = Think()
    opening: Lengths | None = None  # new tokens of the first turn where they differ (an agent's task)
    system_tokens: int = 0  # system prompt, the same for all of a group
    num_groups: int = 1  # different system prompts (tenants, applications)
    group_zipf_factor: float = 1.0
    num_documents: int = 0  # documents that prompts quote after the system prompt; 0: none
    document_tokens: int = 0
    num_retrieved: int = 1  # documents in a prompt; only the first is a prefix that others share
    document_zipf_factor: float = 0.9

    @property
    def quoted_tokens(self) -> int:
        """Tokens of all documents in a prompt."""
        return self.num_retrieved * self.document_tokens if self.num_documents else 0

    @property
    def shared_tokens(self) -> int:
        """Tokens at the start of a prompt that the group has in common."""
        return self.system_tokens + (self.document_tokens if self.num_documents else 0)


class UnderWay(msgspec.Struct, frozen=True, kw_only=True):
    """A service that has run for long when a run of it begins: its conversations are open, its caches are warm."""

    stay_s: float  # of a request: its answer is there so long after it came
    remembered_s: float  # for which caches keep what nobody uses
    same_fraction: float = 1.0  # of turns that reach the replica of the turn before


class Begun(NamedTuple):
    """Sessions in the order in which a run meets them."""

    start_s: Floats
    num_past: Ints  # turns that were before the run
    age_s: Floats  # since the last of them

    @classmethod
    def new(cls, start_s: Floats) -> Begun:
        """Sessions of which nothing was before."""
        return cls(start_s, np.zeros(start_s.size, np.int64), np.zeros(start_s.size))

    def part(self, start: int, stop: int) -> Begun:
        """Some that follow each other."""
        return Begun(self.start_s[start:stop], self.num_past[start:stop], self.age_s[start:stop])

    def among(self, others: Begun) -> Begun:
        """All of both, by the time at which a run meets them."""
        start_s = np.concatenate((self.start_s, others.start_s))
        order = np.argsort(start_s, kind="stable")
        num_past = np.concatenate((self.num_past, others.num_past))
        return Begun(start_s[order], num_past[order], np.concatenate((self.age_s, others.age_s))[order])


class Cut(msgspec.Struct, kw_only=True):
    """What did not fit the context, counted while requests are drawn."""

    num_prompts: int = 0  # prompts shortened
    num_outputs: int = 0  # answers shortened
    num_turns: int = 0  # later turns dropped, because the history had filled the context

    def fraction(self, num_requests: int) -> float:
        """Share of requests that were shortened or dropped, where so many are left.

        A prompt that is cut leaves an answer of one token: the same request.
        """
        return (max(self.num_prompts, self.num_outputs) + self.num_turns) / (num_requests + self.num_turns)


def check_conversation(conversation: Conversation) -> None:
    """Raise where the description makes no sense."""
    whole = {
        "system prompt tokens": conversation.system_tokens,
        "documents": conversation.num_documents,
        "document tokens": conversation.document_tokens,
    }
    for name, value in whole.items():
        if value < 0:
            raise ScenarioError(f"{value} {name}", where=name, hint="give 0 for none, or a positive number")
    if min(conversation.num_groups, conversation.num_retrieved) < 1:
        raise ScenarioError(
            f"{conversation.num_groups} groups, {conversation.num_retrieved} documents in a prompt",
            field="groups",
            hint="at least 1 of each",
        )
    if not 1 <= conversation.num_turns <= MOST_TURNS:
        raise ScenarioError(
            f"a mean of {conversation.num_turns:g} turns",
            field="turns",
            hint=f"a session has at least 1 turn, and at most {MOST_TURNS:,} on average",
        )
    if conversation.num_documents and not conversation.document_tokens:
        raise ScenarioError("documents without a length", field="document", hint="e.g. 1000")
    if min(conversation.think.mean_s, conversation.think.variation_ratio) < 0:
        raise ScenarioError(
            f"a think time of {conversation.think.mean_s:g} s", field="think", hint='0 or more, e.g. "30s"'
        )


class _Streams(dict[str, np.random.Generator]):
    """The stream of each property, made when it is drawn: most traffic draws two of eight."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self._seed = seed

    def __missing__(self, name: str) -> np.random.Generator:
        return self.setdefault(name, stream(self._seed, "traffic", name))


class Sessions:
    """Draws the sessions of a run, block by block; each property has a stream of its own."""

    def __init__(
        self, conversation: Conversation, prompt: Lengths, output: Lengths, seed: int, max_context: int = 0
    ) -> None:
        self.conversation = conversation
        self.max_context = max_context
        self.cut = Cut()
        self.num_sessions = 0
        self.num_rows = 0
        self.random = _Streams(seed)
        self.prompt, self.output = sampler(prompt), sampler(output)
        self.opening: Draw | None = sampler(conversation.opening) if conversation.opening else None

    def draw(self, begun: Begun, most_rows: int, under_way: UnderWay | None = None) -> Requests:
        """The sessions that begin at those times, turn after turn, and no more rows than that.

        Turns are geometric: as many are to come of a session, however many there were.
        """
        alone, start_s = self.conversation.num_turns == 1, begun.start_s
        turns = np.ones(start_s.size, np.int64) if alone else self._turns(start_s.size) + begun.num_past
        first = np.cumsum(turns) - turns
        new = self.prompt(self.random["prompt"], int(turns.sum()))
        if self.opening:
            new[first] = self.opening(self.random["opening"], first.size)
        output = self.output(self.random["output"], new.size)
        own = new if alone else self._with_history(new, output, turns, first)
        prompt = own + (self.conversation.shared_tokens + self._unshared_quotes)
        if alone:
            return self._alone(start_s[:most_rows], prompt[:most_rows], output[:most_rows])
        cached = self._cached(begun, prompt + output, first, under_way) if under_way else None
        is_past = np.arange(prompt.size) - np.repeat(first, turns) < np.repeat(begun.num_past, turns)
        first = np.cumsum(turns - begun.num_past) - (turns - begun.num_past)
        return self._in_turns(begun, prompt[~is_past], output[~is_past], first, most_rows, cached)

    def _cached(self, begun: Begun, held: Ints, first: Ints, under_way: UnderWay) -> Ints:
        """Tokens of each session that the replica of its next turn has kept: those of the last turn that was there."""
        random, num = self.random["cached"], begun.num_past.size
        back = random.geometric(under_way.same_fraction, num).astype(np.int64)
        age_s = begun.age_s + self.conversation.think.sums(random, back - 1) + (back - 1) * under_way.stay_s
        found = (back <= begun.num_past) & (age_s <= under_way.remembered_s)
        return np.where(found, held[first + np.where(found, begun.num_past - back, 0)], 0)

    @property
    def _unshared_quotes(self) -> int:
        return self.conversation.quoted_tokens - (
            self.conversation.shared_tokens - self.conversation.system_tokens
        )

    def _turns(self, size: int) -> Ints:
        return self.random["turns"].geometric(1.0 / self.conversation.num_turns, size).astype(np.int64)

    def _with_history(self, new: Ints, output: Ints, turns: Ints, first: Ints) -> Ints:
        """Own tokens of each turn: all new text of the session so far, and all answers but its own."""
        total = np.cumsum(new + output)
        before = total[first] - new[first] - output[first]
        return np.asarray(total - output - np.repeat(before, turns))

    def _alone(self, start_s: Floats, prompt: Ints, output: Ints) -> Requests:
        prompt, output = self._fit(prompt, output)
        requests = Requests.of(start_s, prompt, output, self.num_sessions)
        self.num_sessions += start_s.size
        self.num_rows += start_s.size
        group = self._groups(start_s.size)
        if group is None:
            return requests
        return msgspec.structs.replace(requests, group=group, shared=self._shared(prompt))

    def _in_turns(
        self, begun: Begun, prompt: Ints, output: Ints, first: Ints, most_rows: int, cached: Ints | None
    ) -> Requests:
        start_s = begun.start_s
        arrival_s = self.conversation.think.draw(self.random["think"], prompt.size)
        arrival_s[first] = start_s
        is_first = np.zeros(prompt.size, bool)
        is_first[first] = True
        session = np.cumsum(is_first) - 1
        group = self._groups(start_s.size)
        opens = is_first.copy()
        opens[first[begun.num_past > 0]] = False
        kept = self._that_fit(prompt, opens, most_rows)
        session, is_first = session[kept], is_first[kept]
        prompt, output = self._fit(prompt[kept], output[kept])
        requests = Requests(
            arrival_s=arrival_s[kept],
            prompt=prompt,
            output=output,
            after=np.where(is_first, -1, np.arange(-1, prompt.size - 1)),
            group=np.full(prompt.size, -1, np.int64) if group is None else group[session],
            shared=np.zeros_like(prompt) if group is None else self._shared(prompt),
            session=session + self.num_sessions,
            priority=np.zeros_like(prompt),
        )
        self.num_sessions += start_s.size
        self.num_rows += prompt.size
        if cached is None:
            return requests
        return msgspec.structs.replace(requests, cached=np.where(is_first, cached[session], 0))

    def _that_fit(self, prompt: Ints, opens: NDArray[np.bool_], most_rows: int) -> Ints:
        """Rows to keep; prompts of a session only grow, so the turns dropped are always its last ones."""
        fits = opens | (prompt < self.max_context) if self.max_context else np.ones(prompt.size, bool)
        kept = np.flatnonzero(fits)[:most_rows]
        if kept.size:
            self.cut.num_turns += int(kept[-1] + 1 - kept.size)
        return kept

    def _fit(self, prompt: Ints, output: Ints) -> tuple[Ints, Ints]:
        prompt, output, num_prompts, num_outputs = cut_to_context(prompt, output, self.max_context)
        self.cut.num_prompts += num_prompts
        self.cut.num_outputs += num_outputs
        return prompt, output

    def _groups(self, size: int) -> Ints | None:
        """What a session shares its prefix with: its system prompt, or its first document under that prompt.

        One level only: two documents under one system prompt count as strangers, which understates the cache.
        """
        talk = self.conversation
        if not talk.shared_tokens:
            return None
        group = draw_ranks(self.random["group"], size, talk.num_groups, talk.group_zipf_factor)
        if talk.num_documents:
            document = draw_ranks(
                self.random["document"], size, talk.num_documents, talk.document_zipf_factor
            )
            group = group * talk.num_documents + document
        return group

    def _shared(self, prompt: Ints) -> Ints:
        return np.minimum(prompt, self.conversation.shared_tokens)


def mean_session_tokens(conversation: Conversation, prompt: Lengths, output: Lengths) -> tuple[float, float]:
    """Mean tokens of a prompt with its history, and of an answer, over all requests, before any cut.

    Geometric turns with mean t: a request has on average t − 1 earlier turns in its session (length-biased:
    E[n(n−1)/2] / E[n] with E[n(n−1)] = 2t(t − 1)), and 1/t of requests are openings.
    """
    earlier = conversation.num_turns - 1.0
    new, answer = mean_tokens(prompt), mean_tokens(output)
    opening = mean_tokens(conversation.opening) if conversation.opening else new
    fixed = conversation.system_tokens + conversation.quoted_tokens
    return fixed + opening + earlier * (new + answer), answer


def resumed(
    think: Think, stay_s: float, per_s: float, num_turns: float, random: np.random.Generator
) -> Iterator[Begun]:
    """Sessions whose next turn comes in a run, and whose last one was before it.

    Later turns come at a rate of their own, λ·(turns − 1), whenever one looks; of those that come at t, the turn before
    was before the run where the pause is longer than t.
    """
    now_s = 0.0
    while now_s < stay_s + think.longest_s:
        times_s = now_s + np.cumsum(random.standard_exponential(CHUNK_ROWS)) / (per_s * (num_turns - 1.0))
        now_s = float(times_s[-1])
        age_s = stay_s + think.draw(random, CHUNK_ROWS)
        there = age_s > times_s
        num_past = random.geometric(1.0 / num_turns, CHUNK_ROWS).astype(np.int64)
        yield Begun(times_s[there], num_past[there], age_s[there])


def in_order(new: Iterator[Floats], old: Iterator[Begun]) -> Iterator[Begun]:
    """New sessions and those that were open already, by the time at which a run meets them."""
    left, known_s = Begun.new(np.zeros(0)), 0.0
    for start_s in new:
        while known_s < start_s[-1]:
            more = next(old, None)
            known_s = inf if more is None else float(more.start_s[-1]) if more.start_s.size else known_s
            left = left if more is None else left.among(more)
        cut = int(np.searchsorted(left.start_s, start_s[-1], side="right"))
        yield Begun.new(start_s).among(left.part(0, cut))
        left = left.part(cut, left.start_s.size)
