"""Who is let in, who is not, why, and what a request costs by each of its ends."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest
from msgspec.structs import replace
from tests.serve.ledger.books import CHEAP, DEAR, SECOND_NS, START_NS, TEN, key_in, opened, totals

from datahall.errors import ServingError, UnknownNameError
from datahall.serve.ledger.account import Refusal
from datahall.serve.ledger.accounts import Reservation
from datahall.serve.ledger.disk.store import Store
from datahall.serve.ledger.folder import Folder
from datahall.serve.ledger.key import PREFIX, Key
from datahall.serve.ledger.keys import create, limit, revoke
from datahall.serve.ledger.ledger import Ledger
from datahall.serve.ledger.money import NOTHING, Price, Usage, nano_usd

NOW = START_NS


@dataclass
class Desk:
    """A folder, and a ledger that is opened when it is first asked for."""

    path: Path
    ledger: Ledger | None = None

    def key(self, **limits: int | str) -> Key:
        made, _ = key_in(self.path, **limits)
        if self.ledger is None:
            self.ledger = opened(self.path)
        return made

    def let_in(self, key: Key, model: str = "small", usage: Usage = TEN, now_ns: int = NOW) -> Reservation:
        found = self.asked(key, model, usage, now_ns)
        assert isinstance(found, Reservation), found
        return found

    def refused(self, key: Key, model: str = "small", usage: Usage = TEN, now_ns: int = NOW) -> Refusal:
        found = self.asked(key, model, usage, now_ns)
        assert isinstance(found, Refusal)
        return found

    def asked(self, key: Key, model: str, usage: Usage, now_ns: int) -> Reservation | Refusal:
        assert self.ledger is not None
        return self.ledger.admit(key, model, usage, now_ns)

    @property
    def books(self) -> Ledger:
        assert self.ledger is not None
        return self.ledger


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def test_money_is_whole_and_rounded_once() -> None:
    assert CHEAP.cost_nano_usd(Usage(10, 4, 1)) == 6_000 + 2_000 + 2_000
    assert DEAR.cost_nano_usd(NOTHING) == 7
    fine = Price(input_nano_usd=nano_usd("0.0025"))  # 2.5 nano-dollars a token
    assert [fine.cost_nano_usd(Usage(count)) for count in (1, 2, 3, 4)] == [3, 5, 8, 10]
    assert nano_usd(0.075) == 75_000_000
    assert Price(input_nano_usd=10**9).cost_nano_usd(Usage(5, 9, 0)) == 0  # all of a prompt is all there is


def test_a_request_costs_what_it_took_whatever_its_end(desk: Desk) -> None:
    key = desk.key(budget_nano_usd=10**9)
    ledger = desk.books
    charged = {
        "answered": ledger.settle(desk.let_in(key), TEN, "answered"),
        "cancelled": ledger.settle(desk.let_in(key), Usage(10, 0, 3), "cancelled"),
        "failed": ledger.settle(desk.let_in(key), NOTHING, "failed"),
    }
    assert charged == {"answered": 30_000, "cancelled": 16_000, "failed": 0}
    ledger.release(desk.let_in(key))
    assert ledger.hit(key, "small", TEN, NOW) is None
    standing = ledger.standing(key, NOW)
    assert (standing.spent_nano_usd, standing.reserved_nano_usd, standing.num_open) == (46_000, 0, 0)
    ledger.close(NOW)
    assert totals(desk.path) == {
        (key.id, "small", "answered"): (1, 20, 30_000),
        (key.id, "small", "cancelled"): (1, 13, 16_000),
        (key.id, "small", "failed"): (1, 0, 0),
        (key.id, "small", "released"): (1, 0, 0),
        (key.id, "small", "cached"): (1, 0, 0),
    }


def test_what_a_cache_spares_is_written_down(desk: Desk) -> None:
    key = desk.key()
    desk.books.hit(key, "small", TEN, NOW)
    desk.books.close(NOW)
    store = Folder(desk.path).store()
    (row,) = store.totals(0, 2**62)
    store.close()
    assert (row.saved_prompt, row.saved_completion, row.saved_nano_usd) == (10, 10, 30_000)


def test_the_dearest_of_those_that_may_answer_is_held_and_who_answered_is_charged(desk: Desk) -> None:
    key = desk.key(budget_nano_usd=DEAR.cost_nano_usd(TEN))
    found = desk.books.admit(key, "small", TEN, NOW, others=["large"])
    assert isinstance(found, Reservation)
    assert found.nano_usd == DEAR.cost_nano_usd(TEN)
    assert desk.books.settle(found, TEN, "answered", served="large") == found.nano_usd
    desk.books.close(NOW)
    assert totals(desk.path) == {(key.id, "large", "answered"): (1, 20, found.nano_usd)}


def test_the_loser_of_two_attempts_is_written_down_and_charged_to_nobody(desk: Desk) -> None:
    key = desk.key()
    lost = [("small", Usage(10, 0, 2)), ("large", Usage(1, 0, 0))]
    assert desk.books.settle(desk.let_in(key), TEN, "answered", wasted=lost) == 30_000
    desk.books.close(NOW)
    store = Folder(desk.path).store()
    (row,) = store.totals(0, 2**62)
    store.close()
    assert (row.nano_usd, row.wasted_nano_usd) == (30_000, 14_000 + 10_007)


def test_a_request_beyond_the_budget_is_refused_before_it_begins(desk: Desk) -> None:
    key = desk.key(budget_nano_usd=70_000)
    first, _ = desk.let_in(key), desk.let_in(key)
    refusal = desk.refused(key)
    assert (refusal.status, refusal.code, refusal.retry_after_s) == (402, "insufficient_quota", 1)
    desk.books.settle(first, Usage(10), "cancelled")
    assert desk.let_in(key)


def test_a_budget_that_is_spent_comes_back_with_its_period(desk: Desk) -> None:
    key = desk.key(budget_nano_usd=30_000, period="day")
    desk.books.settle(desk.let_in(key), TEN, "answered")
    refusal = desk.refused(key)
    assert refusal.status == 402
    assert refusal.retry_after_s is not None
    later = NOW + refusal.retry_after_s * SECOND_NS
    assert desk.refused(key, now_ns=later - SECOND_NS).status == 402
    assert desk.let_in(key, now_ns=later)


def test_a_budget_for_good_does_not_ask_to_come_again(desk: Desk) -> None:
    key = desk.key(budget_nano_usd=30_000, period="total")
    desk.books.settle(desk.let_in(key), TEN, "answered")
    assert desk.refused(key).retry_after_s is None


def test_a_limit_of_requests_says_when_to_come_again(desk: Desk) -> None:
    key = desk.key(requests_per_minute=2)
    desk.let_in(key)
    desk.let_in(key, now_ns=NOW + 5 * SECOND_NS)
    refusal = desk.refused(key, now_ns=NOW + 6 * SECOND_NS)
    assert (refusal.status, refusal.code, refusal.retry_after_s) == (429, "rate_limit_exceeded", 55)
    assert desk.refused(key, now_ns=NOW + 60 * SECOND_NS)
    assert desk.let_in(key, now_ns=NOW + 61 * SECOND_NS)


def test_tokens_that_were_reserved_and_not_taken_come_back(desk: Desk) -> None:
    key = desk.key(tokens_per_minute=50)
    first = desk.let_in(key)
    desk.let_in(key)
    assert desk.refused(key).code == "rate_limit_exceeded"
    desk.books.settle(first, Usage(5), "answered")
    assert desk.let_in(key)
    too_large = desk.refused(key, usage=Usage(51))
    assert (too_large.code, too_large.retry_after_s) == ("request_too_large", None)


def test_tokens_come_back_to_the_second_in_which_they_were_taken(desk: Desk) -> None:
    key = desk.key(tokens_per_minute=50)
    first = desk.let_in(key)
    desk.let_in(key, now_ns=NOW + 30 * SECOND_NS)
    desk.books.settle(first, Usage(5), "answered")
    assert desk.books.standing(key, NOW + 30 * SECOND_NS).tokens_left == 25
    assert desk.books.standing(key, NOW + 61 * SECOND_NS).tokens_left == 30


def test_requests_at_once_are_bounded(desk: Desk) -> None:
    key = desk.key(parallel=1)
    one = desk.let_in(key)
    assert desk.refused(key).status == 429
    desk.books.release(one)
    assert desk.let_in(key)


def test_headers_are_the_counters_that_refuse(desk: Desk) -> None:
    key = desk.key(requests_per_minute=2, tokens_per_minute=50, budget_nano_usd=10**9)
    desk.let_in(key)
    assert desk.books.standing(key, NOW).headers() == (
        ("x-ratelimit-limit-requests", "2"),
        ("x-ratelimit-remaining-requests", "1"),
        ("x-ratelimit-reset-requests", "61s"),
        ("x-ratelimit-limit-tokens", "50"),
        ("x-ratelimit-remaining-tokens", "30"),
        ("x-ratelimit-reset-tokens", "61s"),
        ("x-budget-remaining-usd", "0.999970000"),
    )


def test_a_model_that_is_not_sold_does_not_exist(desk: Desk) -> None:
    key = desk.key()
    assert desk.refused(key, "../../etc/passwd").status == 404
    refusal = desk.books.hit(key, "other", TEN, NOW)
    assert refusal is not None
    assert refusal.status == 404
    with pytest.raises(ServingError, match="is no name of a model"):
        desk.books.sell({"x" * 201: CHEAP})


def test_usage_that_an_upstream_made_up_is_bounded(desk: Desk) -> None:
    key = desk.key()
    assert desk.books.settle(desk.let_in(key), Usage(-5, 9, 2**70), "answered") == 2**41 * 1000
    desk.books.close(NOW)


# keys


def made(desk: Desk, **terms: object) -> tuple[Key, bytes]:
    folder = Folder(desk.path)
    store = folder.store()
    key, secret = create(store, folder.pepper(store), name="acme", now_ns=NOW, **terms)  # type: ignore[arg-type]
    store.close()
    desk.ledger = desk.ledger or opened(desk.path)
    return key, secret.encode()


def test_a_secret_has_256_random_bits_and_is_nowhere_on_the_disk(desk: Desk) -> None:
    key, secret = made(desk)
    assert secret.startswith(PREFIX.encode())
    assert len(secret) == len(PREFIX) + 43
    desk.books.settle(desk.let_in(key), TEN, "answered")
    desk.books.close(NOW)
    for file in desk.path.iterdir():
        assert secret not in file.read_bytes()


def test_a_secret_is_known_and_others_are_not(desk: Desk) -> None:
    key, secret = made(desk)
    assert desk.books.authenticate(secret, "chat", NOW) == key
    for other in (b"", b"dh-", secret[:-1], secret + b"x", key.digest, b"\xff" * 43):
        refusal = desk.books.authenticate(other, "chat", NOW)
        assert isinstance(refusal, Refusal)
        assert refusal.status == 401


def test_a_key_is_for_its_models_and_routes_until_its_end(desk: Desk) -> None:
    key, secret = made(desk, models=["lar*"], routes=["chat", "embeddings"], expires_ns=NOW + 10 * SECOND_NS)
    assert desk.let_in(key, "large")
    assert desk.refused(key, "small").status == 403
    other = desk.books.authenticate(secret, "messages", NOW)
    assert isinstance(other, Refusal)
    assert other.status == 403
    over = desk.books.authenticate(secret, "chat", NOW + 10 * SECOND_NS)
    assert isinstance(over, Refusal)
    assert over.message == "the key has expired"
    assert desk.refused(key, "large", now_ns=NOW + 10 * SECOND_NS).status == 401


def test_a_key_that_another_process_revokes_is_refused_from_the_next_commit_on(desk: Desk) -> None:
    key, secret = made(desk)
    store = Folder(desk.path).store()
    revoke(store, key.shown, NOW)
    desk.books.commit(NOW)
    refusal = desk.books.authenticate(secret, "chat", NOW)
    assert isinstance(refusal, Refusal)
    assert refusal.message == "the key has been revoked"
    assert desk.refused(key).status == 401  # who had authenticated before, too
    store.close()


def test_a_key_that_another_process_makes_or_changes_is_known_at_once(desk: Desk) -> None:
    key = desk.key(requests_per_minute=1)
    desk.let_in(key)
    assert desk.refused(key).status == 429
    store = Folder(desk.path).store()
    limit(
        store, "acme", lambda was: replace(was, requests_per_minute=5, budget_nano_usd=50_000, period="total")
    )
    store.close()
    other, _ = key_in(desk.path, "other")
    desk.books.reload(NOW)
    assert desk.let_in(other)
    assert desk.refused(key).status == 402  # what is open counts against the new budget
    assert desk.books.standing(key, NOW).reserved_nano_usd == 30_000


def test_what_is_open_since_last_month_is_not_held_in_this_one_when_a_key_is_changed(desk: Desk) -> None:
    key = desk.key(budget_nano_usd=50_000)
    desk.let_in(key)
    in_december = NOW + 30 * 86_400 * SECOND_NS
    store = Folder(desk.path).store()
    limit(store, "acme", lambda was: replace(was, budget_nano_usd=60_000))
    store.close()
    desk.books.reload(in_december)
    assert desk.books.standing(key, in_december).reserved_nano_usd == 0


def test_names_of_keys_are_their_own(desk: Desk, tmp_path: Path) -> None:
    desk.key()
    with pytest.raises(ServingError, match='there is a key called "acme"'):
        key_in(tmp_path)
    store: Store = Folder(tmp_path).store()
    with pytest.raises(UnknownNameError, match='"acm" is not a key'):
        revoke(store, "acm", NOW)
    store.close()
