"""The accounts of all keys and customers in memory, as the tables have their terms and what they have spent."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from datahall.scenario.words import BudgetPeriod
from datahall.serve.ledger.account import Account, KeyAccount
from datahall.serve.ledger.disk.batch import Batch
from datahall.serve.ledger.disk.store import Store
from datahall.serve.ledger.key import Key, Limits
from datahall.serve.ledger.money import Price, Usage
from datahall.serve.ledger.period import Span, span_of


class Reservation(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A request that was let in, and what is held for it until it is settled."""

    request: int
    key: int
    model: str
    admitted_ns: int
    usage: Usage
    nano_usd: int
    turn: int  # in the windows of the key
    payer_turn: int  # in those of its customer; -1: in none
    prices: Mapping[str, Price]  # by which it is charged, whatever is sold by then


class News(msgspec.Struct, frozen=True, kw_only=True):
    """What was written of keys and customers since the last look, and what every key has spent."""

    keys: Sequence[Key]
    limited: Mapping[str, Limits]  # customers
    spans: Mapping[BudgetPeriod, Span]
    spent: Mapping[BudgetPeriod, dict[int, int]]  # nano-dollars of each key
    change: int

    def add_unwritten(self, batches: Iterable[Batch]) -> None:
        """Count what is not in the tables yet."""
        for batch in batches:
            for period, span in self.spans.items():
                batch.add_spent(self.spent[period], span.start_ns)


class Accounts:
    """Those of keys by number and by what is kept of their secrets, and of customers that have limits, or had some."""

    def __init__(self) -> None:
        self.of_keys: dict[int, KeyAccount] = {}
        self.of_customers: dict[str, Account] = {}
        self.by_digest: dict[bytes, KeyAccount] = {}
        self._change = -1

    def news(self, store: Store, now_ns: int) -> News:
        """What the tables have that is not here yet."""
        keys, change = store.keys(self._change)
        limited = store.customers(self._change)
        periods = {one.limits.period for one in keys} | {limits.period for limits in limited.values()}
        spans = {period: span_of(period, now_ns) for period in periods}
        spent = {period: store.spent_nano_usd(span.start_ns) for period, span in spans.items()}
        return News(keys=keys, limited=limited, spans=spans, spent=spent, change=change)

    def take(self, news: News, held: Sequence[Reservation], now_ns: int) -> None:
        """Take it in; what is held of open requests stays held."""
        for key in news.keys:
            spent = news.spent[key.limits.period].get(key.id, 0)
            account = self.of_keys.get(key.id)
            if account is None:
                payer = self.of_customers.get(key.customer)
                account = self.of_keys[key.id] = KeyAccount(key, payer, spent, now_ns)
            else:
                self.by_digest.pop(account.key.digest, None)
                account.become(key, spent, now_ns)
                account.open_again([(one.admitted_ns, one.nano_usd) for one in held if one.key == key.id])
            self.by_digest[key.digest] = account
        if news.limited:
            self._limit(news, held, now_ns)
        self._change = news.change

    def _limit(self, news: News, held: Sequence[Reservation], now_ns: int) -> None:
        """Give customers their limits; what all of their keys have spent and hold counts from now on."""
        limited = news.limited
        spent = dict.fromkeys(limited, 0)
        for number, account in self.of_keys.items():
            name = account.key.customer
            if name in limited:
                spent[name] += news.spent[limited[name].period].get(number, 0)
        open_of: dict[str, list[tuple[int, int]]] = {name: [] for name in limited}
        for one in held:
            name = self.of_keys[one.key].key.customer
            if name in limited:
                open_of[name].append((one.admitted_ns, one.nano_usd))
        for name, limits in limited.items():
            payer = self.of_customers.get(name)
            if payer is None:
                payer = self.of_customers[name] = Account("customer", limits, spent[name], now_ns)
            else:
                payer.limit(limits, spent[name], now_ns)
            payer.open_again(open_of[name])
        for account in self.of_keys.values():
            account.payer = self.of_customers.get(account.key.customer)
