"""The admin API as one handler: what the verbs of keys and customers do, upstreams, and the file read anew.

It has a key of its own and an address of its own; no key of a client lets anybody in.  What touches the disk waits on a
thread, so that requests of the data plane never do.
"""

from __future__ import annotations

import asyncio
import hmac
from collections.abc import Callable, Coroutine
from contextlib import AbstractContextManager
from functools import partial
from time import time_ns
from typing import Any, TypeVar
from urllib.parse import parse_qs, unquote

import msgspec

from datahall.catalog import Catalog
from datahall.errors import DatahallError, UnknownNameError
from datahall.scenario.form import Form
from datahall.scenario.kinds import Reading
from datahall.scenario.sections.operations.gateway import KeyTerms, Month
from datahall.serve.gateway.admin.described import (
    CustomerSaid,
    KeySaid,
    Reloaded,
    UpstreamSaid,
    Used,
    description,
)
from datahall.serve.gateway.admin.fleet import Fleet
from datahall.serve.gateway.admin.inputs import LIMITS, NEW_KEY, OF_CUSTOMER, terms, words
from datahall.serve.gateway.gateway import Gateway
from datahall.serve.gateway.refusing import Refused
from datahall.serve.http import Exchange, Request
from datahall.serve.ledger import keys as ledger_keys
from datahall.serve.ledger.bill import by_customer, by_key, by_model
from datahall.serve.ledger.desk import Desk
from datahall.serve.ledger.key import UNLIMITED, Key, Limits
from datahall.serve.ledger.period import month_of
from datahall.serve.openapi import PATH
from datahall.serve.upstreams.upstream import Upstream

Found = TypeVar("Found")
Books = Callable[[], AbstractContextManager[Desk]]
Reload = Callable[[], Coroutine[Any, Any, Reloaded]]

_encode = msgspec.json.Encoder().encode
_BODIES = msgspec.json.Decoder(dict[str, Any])


class Admin:
    """Answers who runs the gateway."""

    def __init__(self, gateway: Gateway, fleet: Fleet, key: str, books: Books, reload: Reload) -> None:
        self._gateway = gateway
        self._fleet = fleet
        self._key = key.encode("latin-1")
        self._books = books
        self._reload = reload
        self._catalog = Catalog(user=False)  # of which terms of keys ask nothing
        self._one_by_one = asyncio.Lock()

    def lets_in(self, head: Request) -> bool:
        """Whether the body behind a head is worth gathering."""
        return self._is_known(head.headers.get("authorization", ""))

    async def __call__(self, exchange: Exchange) -> None:
        """Answer one request."""
        gateway = self._gateway
        try:
            if exchange.request.path == PATH and exchange.request.method == "GET":
                exchange.send(200, description())
                return
            if not self._is_known(exchange.request.headers.get("authorization", "")):
                raise Refused(401, "the admin's key, as Authorization: Bearer KEY", "invalid_api_key")
            found = await self._answered(exchange)
        except Refused as refused:
            refused.send(exchange, gateway.next_id())
        except UnknownNameError as error:
            Refused(404, words(error), "not_found").send(exchange, gateway.next_id())
        except DatahallError as error:
            Refused(400, words(error), "invalid_value").send(exchange, gateway.next_id())
        else:
            exchange.send(200, _encode(found))

    def _is_known(self, said: str) -> bool:
        """Whether it is the admin's key; compared in constant time."""
        secret = said[7:].strip() if said[:7].lower() == "bearer " else ""
        return hmac.compare_digest(secret.encode("latin-1", "replace"), self._key)

    async def _answered(self, exchange: Exchange) -> object:
        request = exchange.request
        place = [unquote(part) for part in request.path.split("/")[1:]]
        match request.method, place:
            case "GET", ["keys"]:
                return await self._at_books(self._keys)
            case "GET", ["customers"]:
                return await self._at_books(self._customers)
            case "GET", ["usage"]:
                return await self._at_books(partial(self._usage, request.query))
            case "GET", ["upstreams"]:
                return [self._upstream(one) for one in self._upstreams().values()]
            case "POST", ["keys"]:
                return await self._changed(partial(self._create, self._terms(exchange, NEW_KEY)))
            case "POST", ["keys", name, "limits"]:
                return await self._changed(partial(self._limit, name, self._terms(exchange, LIMITS)))
            case "POST", ["keys", name, "rotate"]:
                return await self._changed(partial(self._rotate, name))
            case "POST", ["keys", name, "revoke"]:
                return await self._changed(partial(self._revoke, name))
            case "POST", ["customers", name, "limits"]:
                asked = self._terms(exchange, OF_CUSTOMER, customer=name)
                return await self._changed(partial(self._limit_customer, asked))
            case "POST", ["upstreams", name, "drain" | "enable" as word]:
                return self._turned(name, word)
            case "POST", ["reload"]:
                async with self._one_by_one:
                    return await self._reload()
            case _, ["keys" | "customers" | "usage" | "upstreams" | "reload", *_]:
                raise Refused(
                    405, f"{request.path[:100]} is not asked by {request.method}", "method_not_allowed"
                )
        raise Refused(404, f"nothing is at {request.path[:100]}", "not_found")

    def _terms(self, exchange: Exchange, asked: Form, **of_path: str) -> KeyTerms:
        """What a body says, with what the path names."""
        try:
            said = _BODIES.decode(exchange.request.body or b"{}")
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise Refused(400, f"the body is no JSON object: {error}", "invalid_json") from None
        return terms(asked, {**said, **of_path}, self._catalog)

    # the books, on a thread

    async def _at_books(self, work: Callable[[Desk], Found]) -> Found:
        return await asyncio.get_running_loop().run_in_executor(None, self._with_books, work)

    async def _changed(self, work: Callable[[Desk], Found]) -> Found:
        """A change, which the gateway knows of when it is answered."""
        found = await self._at_books(work)
        await asyncio.get_running_loop().run_in_executor(None, self._gateway.ledger.reload, time_ns())
        return found

    def _with_books(self, work: Callable[[Desk], Found]) -> Found:
        with self._books() as desk:
            return work(desk)

    def _keys(self, desk: Desk) -> list[KeySaid]:
        keys, _ = desk.store.keys()
        spent = ledger_keys.spent_usd(desk.store, keys, desk.now_ns)
        return [KeySaid.of(key, desk.now_ns, spent_usd=spent[key.id]) for key in keys]

    def _customers(self, desk: Desk) -> list[CustomerSaid]:
        return [CustomerSaid.of(one) for one in ledger_keys.customers(desk.store, desk.now_ns)]

    def _usage(self, query: str, desk: Desk) -> Used:
        said = parse_qs(query)
        by = said.pop("by", ["key"])[-1]
        month = said.pop("month", [""])[-1]
        if said:
            raise Refused(
                400, f'nothing is called "{next(iter(said))[:60]}" here: by, month', "invalid_value"
            )
        if month:
            month = Month("").read(month, Reading(catalog=self._catalog))
        named, span = month_of(month, desk.now_ns)
        totals = [*desk.store.totals(span.start_ns, span.end_ns)]
        keys, _ = desk.store.keys()
        match by:
            case "key":
                return Used(by="key", month=named, lines=by_key(totals, keys))
            case "customer":
                return Used(by="customer", month=named, lines=by_customer(totals, keys))
            case "model":
                return Used(by="model", month=named, lines=by_model(totals))
        raise Refused(400, f'"{by[:60]}" is not one of key, model, customer', "invalid_value", param="by")

    def _create(self, asked: KeyTerms, desk: Desk) -> KeySaid:
        key, secret = ledger_keys.create(
            desk.store,
            desk.pepper,
            name=asked.name,
            customer=asked.customer,
            models=asked.models,
            routes=asked.routes,
            limits=_limits(asked)(UNLIMITED),
            now_ns=desk.now_ns,
            expires_ns=ledger_keys.end_ns(desk.now_ns, asked.expires_s),
        )
        return KeySaid.of(key, desk.now_ns, secret=secret)

    def _limit(self, name: str, asked: KeyTerms, desk: Desk) -> KeySaid:
        return KeySaid.of(ledger_keys.limit(desk.store, name, _limits(asked)), desk.now_ns)

    def _rotate(self, name: str, desk: Desk) -> KeySaid:
        key, secret = ledger_keys.rotate(desk.store, desk.pepper, name)
        return KeySaid.of(key, desk.now_ns, secret=secret)

    def _revoke(self, name: str, desk: Desk) -> KeySaid:
        key: Key = ledger_keys.revoke(desk.store, name, desk.now_ns)
        return KeySaid.of(msgspec.structs.replace(key, revoked_ns=desk.now_ns), desk.now_ns)

    def _limit_customer(self, asked: KeyTerms, desk: Desk) -> CustomerSaid:
        return CustomerSaid.of(
            ledger_keys.limit_customer(desk.store, asked.customer, _limits(asked), desk.now_ns)
        )

    # upstreams

    def _upstreams(self) -> dict[str, Upstream]:
        return {one.name: one for one in self._fleet.upstreams}

    def _turned(self, name: str, word: str) -> UpstreamSaid:
        there = self._upstreams()
        if name not in there:
            raise UnknownNameError("upstream", name[:60], there)
        if word == "drain":
            there[name].drain()
        else:
            there[name].enable()
        return self._upstream(there[name])

    def _upstream(self, one: Upstream) -> UpstreamSaid:
        return UpstreamSaid(
            name=one.name,
            is_ready=one.is_ready(self._gateway.loop.time()),
            is_drained=one.is_drained,
            num_open=one.num_open,
            num_waiting=one.num_waiting,
            num_failed=one.num_failed,
            latency_s=one.latency_s,
            models=tuple(
                model.name
                for model in self._fleet.models
                if any(target.upstream is one for target in model.pool.targets)
            ),
        )


def _limits(asked: KeyTerms) -> Callable[[Limits], Limits]:
    return lambda was: ledger_keys.after(
        was, asked.requests_per_minute, asked.minute_tokens, asked.parallel, asked.budget
    )
