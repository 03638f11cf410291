"""A slow, plain scheduler of one continuous-batching replica, step by step: what the compiled loop must agree with."""

from __future__ import annotations

from dataclasses import dataclass, field

from datahall.inference.step.table import (
    StepTable,
    decode_time,
    head_time,
    host_time,
    prefill_time,
    tokens_time,
)


@dataclass
class One:
    row: int
    arrival_s: float
    prompt: int
    output: int
    todo: int = 0
    done: int = 0
    emitted: int = 0
    blocks: int = 0
    chunk: int = 0
    scheduled_s: float = -1.0
    first_s: float = -1.0
    end_s: float = -1.0
    token_s: float = -1.0  # of the last
    preempted: int = 0
    cached: int = 0
    swapped: bool = False  # its cache is on the host

    @property
    def decodes(self) -> bool:
        return self.done >= self.todo


@dataclass
class Rules:
    budget: int = 2048
    sequences: int = 64
    block_tokens: int = 16
    num_blocks: int = 1000
    chunked: bool = True
    mixed: bool = True
    whole_prompt: bool = True
    whole_output: bool = False
    swap_token_s: float = 0.0  # to move the cache of a token to the host, or back; 0: it is computed again


@dataclass
class Outcome:
    requests: list[One]
    num_steps: int = 0
    prompt_tokens: int = 0
    num_preempted: int = 0
    gaps: list[float] = field(default_factory=list)


def play(table: StepTable, rules: Rules, requests: list[One], users: int = 0) -> Outcome:
    """Every step on its own.  With users, arrival_s is the time to think before each row."""
    replica = _Replica(table, rules, Outcome(requests))
    coming = list(requests)
    if users:
        coming, later = coming[:users], coming[users:]
    else:
        later = []
    now = 0.0
    while coming or replica.waiting or replica.running:
        if not replica.waiting and not replica.running:
            now = max(now, min(one.arrival_s for one in coming))
        arrived = sorted(
            (one for one in coming if one.arrival_s <= now), key=lambda one: (one.arrival_s, one.row)
        )
        replica.waiting += arrived
        coming = [one for one in coming if one.arrival_s > now]
        for one in arrived:
            one.todo = one.prompt
        step_s, decoding = replica.schedule(now)
        now += step_s
        for _ in replica.finish(now, decoding):
            if later:
                following = later.pop(0)
                following.arrival_s += now
                coming.append(following)
    return replica.outcome


class _Replica:
    def __init__(self, table: StepTable, rules: Rules, outcome: Outcome) -> None:
        self.table, self.rules, self.outcome = table, rules, outcome
        self.waiting: list[One] = []
        self.running: list[One] = []
        self.free = rules.num_blocks

    def blocks(self, tokens: int) -> int:
        return -(-tokens // self.rules.block_tokens)

    def preempt(self) -> float:
        """The latest gives way; the time to move its cache out."""
        one = self.running.pop()
        self.free += one.blocks
        one.blocks = 0
        one.swapped = one.decodes and self.rules.swap_token_s > 0
        if not one.swapped:
            one.todo, one.done = one.prompt + one.emitted, 0
        one.preempted += 1
        self.outcome.num_preempted += 1
        self.waiting.insert(0, one)
        return self.rules.swap_token_s * one.done

    def swap_in(self) -> float:
        """Those at the front whose cache is on the host, while there is room for it and for a step of all that run."""
        moved_s = 0.0
        while self.waiting and self.waiting[0].swapped and len(self.running) < self.rules.sequences:
            one = self.waiting[0]
            growing = sum(other.decodes for other in self.running) // self.rules.block_tokens
            if self.running and self.blocks(one.done) + 1 + growing > self.free:
                break
            self.running.append(self.waiting.pop(0))
            one.swapped, one.blocks = False, self.blocks(one.done)
            self.free -= one.blocks
            moved_s += self.rules.swap_token_s * one.done
        return moved_s

    def schedule(self, now: float) -> tuple[float, list[One]]:
        rules = self.rules
        preempted, moved_s = False, self.swap_in()
        while True:  # blocks for those that run, the latest giving way
            decoding = [one for one in self.running if one.decodes]
            left = rules.budget - (len(decoding) if rules.mixed else 0)
            needed = sum(self.blocks(one.done + 1) > one.blocks for one in decoding)
            for one in self.running:
                if not one.decodes and left > 0:
                    needed += self.blocks(one.done + min(one.todo - one.done, left)) - one.blocks
            if needed <= self.free:
                break
            moved_s += self.preempt()
            preempted = True
        if rules.mixed:
            self.grow(decoding)
        prompts: list[One] = []
        for one in [one for one in self.running if not one.decodes]:
            if left > 0:
                self.take(one, min(one.todo - one.done, left))
                left -= one.chunk
                prompts.append(one)
        while left > 0 and self.waiting and len(self.running) < rules.sequences:
            one = self.waiting[0]
            if (preempted and self.running) or one.swapped:
                break
            done = min(one.cached, one.todo - 1)
            chunk = one.todo - done
            if chunk > left:
                if rules.chunked:
                    chunk = left
                elif prompts:
                    break
            tokens = one.todo + one.output - one.emitted - 1 if rules.whole_output else done + chunk
            if self.blocks(max(tokens, one.todo) if rules.whole_prompt else tokens) > self.free:
                break
            self.waiting.pop(0)
            self.running.append(one)
            one.done = done
            if one.scheduled_s < 0:
                one.scheduled_s = now
            self.take(one, chunk, tokens)
            left -= chunk
            prompts.append(one)
        if prompts and not rules.mixed:
            decoding = []
        elif not rules.mixed:
            self.grow(decoding)
        return self.price(prompts, decoding) + moved_s, decoding

    def grow(self, decoding: list[One]) -> None:
        for one in decoding:
            more = max(0, self.blocks(one.done + 1) - one.blocks)
            one.blocks += more
            self.free -= more

    def take(self, one: One, chunk: int, tokens: int = 0) -> None:
        more = max(0, self.blocks(max(tokens, one.done + chunk)) - one.blocks)
        one.blocks += more
        self.free -= more
        one.chunk = chunk
        self.outcome.prompt_tokens += chunk

    def price(self, prompts: list[One], decoding: list[One]) -> float:
        if not prompts and not decoding:
            return 0.0
        self.outcome.num_steps += 1
        n = len(decoding)
        ready = sum(one.done + one.chunk == one.todo for one in prompts)
        context = sum(one.done for one in decoding) / n + 1.0 if n else 0.0
        return (
            tokens_time(self.table, n + sum(one.chunk for one in prompts))
            + decode_time(self.table, n, context)
            + sum(prefill_time(self.table, one.chunk, one.done) for one in prompts)
            + head_time(self.table, n + ready)
            + host_time(self.table, n + len(prompts))
        )

    def emit(self, one: One, now: float) -> None:
        one.emitted += 1
        if one.first_s < 0:
            one.first_s = now
        else:
            self.outcome.gaps.append(now - one.token_s)
        one.token_s = now

    def finish(self, now: float, decoding: list[One]) -> list[One]:
        for one in decoding:
            one.done += 1
            one.todo = one.done
            self.emit(one, now)
        for one in self.running:
            if one.chunk:
                one.done += one.chunk
                one.chunk = 0
                if one.done == one.todo:
                    self.emit(one, now)
        ended = [one for one in self.running if one.emitted >= one.output]
        for one in ended:
            one.end_s = now
            self.free += one.blocks
            self.running.remove(one)
        return ended
