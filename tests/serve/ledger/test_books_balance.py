"""The books balance under any interleaving of requests, commits, locks, kills and time."""

from __future__ import annotations

import os
import shutil
import sqlite3
import tempfile
from collections import Counter
from pathlib import Path

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, rule
from tests.serve.ledger.books import MODELS, SECOND_NS, START_NS, key_in, limited, opened, totals

from datahall.serve.ledger.account import Refusal
from datahall.serve.ledger.accounts import Reservation
from datahall.serve.ledger.money import NOTHING, Usage

REQUESTS, TOKENS, PARALLEL = 6, 200, 4
BUDGET = 4_000_000  # nano-dollars
OF_ALL = 3 / 2  # what a customer of two keys may use, beside one of them
usages = st.builds(Usage, st.integers(0, 60), st.just(0), st.integers(0, 60))
HOUR = 3600
MEMORY = "/dev/shm"  # what is brought to a disk waits for it, thousands of times here
quarters = st.tuples(st.integers(0, 4), st.integers(0, 4))
outcomes = st.sampled_from(("answered", "cancelled", "failed"))


class Books(RuleBasedStateMachine):
    """A ledger beside a list of what happened to it, which is added up anew each time."""

    open = Bundle("open")
    over = Bundle("over")

    def __init__(self) -> None:
        super().__init__()
        self.path = Path(tempfile.mkdtemp(dir=MEMORY if os.path.isdir(MEMORY) else None))
        self.now_ns = START_NS
        self.keys = [
            key_in(
                self.path,
                f"key-{number}",
                customer="acme",
                requests_per_minute=REQUESTS,
                tokens_per_minute=TOKENS,
                parallel=PARALLEL,
                budget_nano_usd=BUDGET,
                period=period,
            )[0]
            for number, period in enumerate(("day", "total"))
        ]
        self._limit_customer()
        self.ledger = opened(self.path, self.now_ns, segment_bytes=4096)
        self.held: dict[int, Reservation] = {}
        self.lines: list[
            tuple[int, str, str, int, int, int]
        ] = []  # key, model, outcome, tokens, nano-USD, when
        self.let_in: list[list[int]] = [[], []]  # by key, when; since the last kill
        self.tokens: list[dict[int, tuple[int, int]]] = [{}, {}]  # by key and request: when, how many

    def teardown(self) -> None:
        self.ledger.close(self.now_ns)
        expected: Counter[tuple[int, str, str]] = Counter()
        tokens: Counter[tuple[int, str, str]] = Counter()
        money: Counter[tuple[int, str, str]] = Counter()
        for key, model, outcome, some, nano, _ in self.lines:
            expected[key, model, outcome] += 1
            tokens[key, model, outcome] += some
            money[key, model, outcome] += nano
        found = totals(self.path)
        assert found == {row: (expected[row], tokens[row], money[row]) for row in expected}
        shutil.rmtree(self.path)

    @rule(target=open, key=st.integers(0, 1), model=st.sampled_from(sorted(MODELS)), usage=usages)
    def admit(self, key: int, model: str, usage: Usage) -> Reservation | None:
        found = self.ledger.admit(self.keys[key], model, usage, self.now_ns, others=["large"])
        if isinstance(found, Refusal):
            assert found.status in (402, 429, 503)
            return None
        self.held[found.request] = found
        self.let_in[key].append(self.now_ns)
        self.tokens[key][found.request] = (self.now_ns, usage.tokens)
        return found

    @rule(
        target=over,
        one=consumes(open),
        share=quarters,
        outcome=outcomes,
        served=st.sampled_from(("", "large")),
    )
    def settle(
        self, one: Reservation | None, share: tuple[int, int], outcome: str, served: str
    ) -> Reservation | None:
        if one is None or one.request not in self.held:
            return one
        del self.held[one.request]
        usage = Usage(one.usage.prompt * share[0] // 4, 0, one.usage.completion * share[1] // 4)
        charged = self.ledger.settle(one, usage, outcome, served)
        model = served or one.model
        assert charged == (MODELS[model].cost_nano_usd(usage) if usage != NOTHING else 0)
        self._line(one, model, outcome, usage, charged)
        return one

    @rule(target=over, one=consumes(open))
    def release(self, one: Reservation | None) -> Reservation | None:
        if one is None or one.request not in self.held:
            return one
        del self.held[one.request]
        self.ledger.release(one)
        self.let_in[self._place(one)].remove(
            min(self.let_in[self._place(one)], key=lambda at: abs(at - one.admitted_ns))
        )
        self._line(one, one.model, "released", NOTHING, 0)
        return one

    @rule(one=over)
    def settle_again(self, one: Reservation | None) -> None:
        if one is not None:
            assert self.ledger.settle(one, one.usage, "answered") == 0
            self.ledger.release(one)

    @rule(key=st.integers(0, 1), saved=usages)
    def hit(self, key: int, saved: Usage) -> None:
        if self.ledger.hit(self.keys[key], "small", saved, self.now_ns) is None:
            self.let_in[key].append(self.now_ns)
            self.lines.append((self.keys[key].id, "small", "cached", 0, 0, self.now_ns))

    @rule(seconds=st.sampled_from((0.3, 1, 7, 59.9, 60, 61, HOUR, 25 * HOUR)))
    def pass_time(self, seconds: float) -> None:
        self.now_ns += int(seconds * SECOND_NS)

    @rule()
    def commit(self) -> None:
        assert self.ledger.commit(self.now_ns)

    @rule()
    def commit_while_another_holds_the_database(self) -> None:
        other = sqlite3.connect(self.path / "ledger.sqlite", isolation_level=None)
        other.execute("begin immediate")
        changed = bool(self.ledger._batch.sums or self.ledger._batch.opened or self.ledger._unwritten)
        assert self.ledger.commit(self.now_ns) or changed
        other.execute("rollback")
        other.close()

    @rule()
    def kill(self) -> None:
        self.ledger.drop()
        for one in self.held.values():
            self._line(one, one.model, "unsettled", one.usage, one.nano_usd)
        self.held, self.let_in, self.tokens = {}, [[], []], [{}, {}]
        self.ledger = opened(self.path, self.now_ns, segment_bytes=4096)

    @invariant()
    def counters_are_the_sum_of_the_books(self) -> None:
        for key in self.keys:
            standing = self.ledger.standing(key, self.now_ns)
            start = (
                0
                if key.limits.period == "total"
                else self.now_ns // (24 * HOUR * SECOND_NS) * 24 * HOUR * SECOND_NS
            )
            spent = sum(line[4] for line in self.lines if line[0] == key.id and line[5] >= start)
            mine = [one for one in self.held.values() if one.key == key.id]
            held = sum(one.nano_usd for one in mine if one.admitted_ns >= start)
            assert (standing.spent_nano_usd, standing.reserved_nano_usd) == (spent, held)
            assert spent + held <= BUDGET
            assert standing.num_open == len(mine) <= PARALLEL

    @rule()
    def limit_the_customer_anew(self) -> None:
        self._limit_customer()
        self.ledger.reload(self.now_ns)

    @invariant()
    def a_customer_is_the_sum_of_its_keys(self) -> None:
        standing = self.ledger.customers(self.now_ns)["acme"]
        start = self.now_ns // (24 * HOUR * SECOND_NS) * 24 * HOUR * SECOND_NS
        spent = sum(line[4] for line in self.lines if line[5] >= start)
        held = sum(one.nano_usd for one in self.held.values() if one.admitted_ns >= start)
        assert (standing.spent_nano_usd, standing.reserved_nano_usd) == (spent, held)
        assert spent + held <= BUDGET * OF_ALL
        assert standing.num_open == len(self.held) <= PARALLEL * OF_ALL

    @invariant()
    def no_minute_of_a_customer_holds_more_than_its_limit(self) -> None:
        let_in = sorted([*self.let_in[0], *self.let_in[1]])
        taken = [*self.tokens[0].values(), *self.tokens[1].values()]
        for at in let_in:
            minute = range(at, at + 60 * SECOND_NS)
            assert sum(one in minute for one in let_in) <= REQUESTS * OF_ALL
            assert sum(some for one, some in taken if one in minute) <= TOKENS * OF_ALL

    @invariant()
    def no_minute_holds_more_than_the_limit(self) -> None:
        for key in range(2):
            for at in self.let_in[key]:
                assert len([one for one in self.let_in[key] if at <= one < at + 60 * SECOND_NS]) <= REQUESTS
            taken = self.tokens[key].values()
            for at, _ in taken:
                assert sum(some for one, some in taken if at <= one < at + 60 * SECOND_NS) <= TOKENS

    def _limit_customer(self) -> None:
        limited(
            self.path,
            "acme",
            requests_per_minute=int(REQUESTS * OF_ALL),
            tokens_per_minute=int(TOKENS * OF_ALL),
            parallel=int(PARALLEL * OF_ALL),
            budget_nano_usd=int(BUDGET * OF_ALL),
            period="day",
        )

    def _place(self, one: Reservation) -> int:
        return [key.id for key in self.keys].index(one.key)

    def _line(self, one: Reservation, model: str, outcome: str, usage: Usage, nano: int) -> None:
        self.lines.append((one.key, model, outcome, usage.tokens, nano, one.admitted_ns))
        tokens = self.tokens[self._place(one)]
        if one.request in tokens:
            tokens[one.request] = (tokens[one.request][0], usage.tokens)


Books.TestCase.settings = settings(
    max_examples=40, stateful_step_count=40, deadline=None, suppress_health_check=list(HealthCheck)
)
TestBooks = Books.TestCase
