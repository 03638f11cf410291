"""What it takes to know a key, to let a request in and charge it, and to answer one from the cache."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from time import process_time

from table import Line

from datahall.serve.cache.asked import asked_of
from datahall.serve.cache.exact import Bounds, ExactCache
from datahall.serve.cache.kept import kept_whole
from datahall.serve.ledger.accounts import Reservation
from datahall.serve.ledger.desk import desk
from datahall.serve.ledger.folder import Folder
from datahall.serve.ledger.group_commit import GroupCommit
from datahall.serve.ledger.key import Key, Limits
from datahall.serve.ledger.keys import create
from datahall.serve.ledger.ledger import Ledger
from datahall.serve.ledger.money import Price, Usage
from datahall.serve.telemetry.instruments import Instruments
from datahall.serve.telemetry.told import Told

NUM = 20_000
NOW_NS = 1_795_000_000 * 10**9
PROMPT, USAGE = "What is the capital of France? " * 32, Usage(256, 0, 64)  # 1 kB, as prompts of chats have
BODY = b'{"model":"small","messages":[{"role":"user","content":"%b"}]}' % PROMPT.encode()
PRICE = Price(input_nano_usd=10**9, output_nano_usd=2 * 10**9)
LIMITS = Limits(requests_per_minute=10**9, tokens_per_minute=10**12, budget_nano_usd=10**17)
TOLD = Told(
    request_id="r", route="chat", result="answered", status=200, began_ns=NOW_NS, first_ns=NOW_NS + 10**6,
    ended_ns=NOW_NS + 10**7, key="a", customer="a", model="small", served="small", usage=USAGE, num_attempts=1,
)  # fmt: skip


def book_lines() -> list[Line]:
    """How many of each a core does, all limits and the group commit at work."""
    with TemporaryDirectory() as folder:
        with desk(folder) as open_desk:
            _, secret = create(open_desk.store, open_desk.pepper, name="a", limits=LIMITS, now_ns=NOW_NS)
        ledger = Ledger(Folder(Path(folder)), {"small": PRICE}, NOW_NS)
        commits = GroupCommit(ledger)
        try:
            return _lines(ledger, secret.encode())
        finally:
            commits.stop()


def _lines(ledger: Ledger, secret: bytes) -> list[Line]:
    key = ledger.authenticate(secret, "chat", NOW_NS)
    assert isinstance(key, Key)
    cache, instruments = ExactCache(Bounds()), Instruments()
    first = asked_of(key.customer, "small@1", "chat", BODY)
    assert first is not None
    cache.put(first, kept_whole(key.customer, "chat", USAGE, b"{}"), NOW_NS)

    def settled() -> None:
        one = ledger.admit(key, "small", USAGE, NOW_NS)
        assert isinstance(one, Reservation)
        ledger.settle(one, USAGE, "answered")

    def hit() -> None:
        ledger.authenticate(secret, "chat", NOW_NS)
        asked = asked_of(key.customer, "small@1", "chat", BODY)
        kept = cache.get(asked, NOW_NS) if asked is not None else None
        assert asked is not None
        assert kept is not None
        cache.answer(asked, kept)
        ledger.hit(key, "small", kept.usage, NOW_NS)
        instruments.count(TOLD)

    return [
        Line("ledger: keys known", _per_s(lambda: ledger.authenticate(secret, "chat", NOW_NS)), "/s"),
        Line("ledger: requests let in, journalled, charged", _per_s(settled), "/s", 50_000, True),
        Line("telemetry: requests counted", _per_s(lambda: instruments.count(TOLD)), "/s"),
        Line("cache: hits with key, limits and metrics, without HTTP", _per_s(hit), "/s", 20_000, True),
    ]


def _per_s(work: Callable[[], object]) -> float:
    """How many a core does, by the least time of three runs of many."""

    def run_s() -> float:
        began_s = process_time()
        for _ in range(NUM):
            work()
        return (process_time() - began_s) / NUM

    return 1.0 / min(run_s() for _ in range(3))
