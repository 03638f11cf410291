"""Reads `gateway.toml`: every key is declared here once, and every problem of a file is said at once, with its line."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import date
from pathlib import Path
from typing import Any, get_args

import msgspec

from datahall.catalog.document import Document, read
from datahall.errors import DatahallError, DocumentError, Problem, nearest
from datahall.scenario.idle import do_nothing
from datahall.scenario.kinds.budgets import Spending
from datahall.serve.cache.exact import Bounds
from datahall.serve.config import values
from datahall.serve.config.settings import (
    AdminSettings,
    ModelSettings,
    ServerSettings,
    Settings,
    TargetSettings,
    TelemetrySettings,
    UpstreamSettings,
)
from datahall.serve.config.values import Reader, Wrong
from datahall.serve.http import Limits, Timeouts
from datahall.serve.http.browsers import is_loopback
from datahall.serve.ledger.key import Limits as KeyLimits
from datahall.serve.ledger.money import FREE, Price, nano_usd
from datahall.serve.upstreams.routing import RULES
from datahall.serve.upstreams.upstream import INFERENCE, Api

Keys = Mapping[str, tuple[str, Reader]]  # as a key is written: the field it sets and its reader

SERVER: Keys = {
    "listen": ("listen", values.address),
    "auth": ("has_auth", values.truth),
    "state": ("state", values.text),
    "drain": ("drain_s", values.seconds(0.0)),
    "certificate": ("certificate", values.text),
    "certificate_key": ("certificate_key", values.text),
}
LIMITS: Keys = {
    "head": ("head_bytes", values.size),
    "body": ("body_bytes", values.size),
    "gathered": ("gathered_bytes", values.size),
    "connections": ("num_connections", values.count(1)),
    "head_time": ("head_s", values.seconds()),
    "body_time": ("body_s", values.seconds()),
    "idle": ("idle_s", values.seconds()),
    "unread": ("write_s", values.seconds()),
}
UPSTREAM: Keys = {
    "url": ("url", values.url),
    "file": ("file", values.model_file),
    "api": ("api", values.one_of(get_args(Api))),
    "key": ("key", values.secret),
    "concurrency": ("most", values.count(0)),
    "health": ("health", values.path),
    "metrics": ("metrics", values.path),
    "authorities": ("authorities", values.text),
}
TIMEOUTS: Keys = {
    "connect": ("connect_s", values.seconds()),
    "first_byte": ("first_byte_s", values.seconds()),
    "between": ("between_s", values.seconds()),
    "total": ("total_s", values.seconds()),
}
MODEL: Keys = {
    "routing": ("routing", values.one_of(tuple(RULES))),
    "fallbacks": ("fallbacks", values.names),
    "relief": ("relief", values.text),
    "relief_at": ("relief_at", values.count(1)),
    "retries": ("num_retries", values.count(0, 10)),
    "hedge": ("hedge_s", values.seconds()),
    "deadline": ("deadline_s", values.seconds()),
    "longest": ("longest_tokens", values.count(1, 1_000_000)),
    "queue": ("most_waiting", values.count(0)),
    "queue_time": ("queue_s", values.seconds(0.0)),
}
PRICE: Keys = {
    "input": ("input_nano_usd", values.dollars),
    "cached": ("cached_nano_usd", values.dollars),
    "output": ("output_nano_usd", values.dollars),
    "call": ("call_nano_usd", values.dollars),
}
TARGET: Keys = {
    "upstream": ("upstream", values.text),
    "model": ("model", values.text),
    "cost": ("cost_nano_usd", values.dollars),
}
ADMIN: Keys = {
    "listen": ("listen", values.address),
    "key": ("key", values.secret),
}
CACHE: Keys = {
    "size": ("most_bytes", values.size),
    "tenant": ("tenant_bytes", values.size),
    "answer": ("answer_bytes", values.size),
    "ttl": ("ttl_s", values.seconds()),
}
CUSTOMER: Keys = {
    "rpm": ("requests_per_minute", values.count(0)),
    "tpm": ("tokens_per_minute", values.count(0, 10**12)),
    "parallel": ("parallel", values.count(0, 10**6)),
    "budget": ("budget", values.budget),
}
TELEMETRY: Keys = {
    "metrics": ("metrics", values.address),
    "log": ("log", values.text),
    "traces": ("traces", values.url),
    "traces_kept": ("kept_fraction", values.share),
}
TABLES = ("server", "admin", "telemetry", "cache", "upstream", "model", "customer")
MOST_NAME = 200  # characters
BESIDE = {"upstreams", "named", "price", "priced_as"}  # of a model, read by functions of their own


def is_gateway(document: Document) -> bool:
    """Whether a file is one of a gateway, and no scenario and no part of a catalogue."""
    content = document.content
    return "upstream" in content and "model" in content


def read_settings(file: Path, day: date) -> Settings:
    """The settings in a file, with the list prices of a day; all of its problems as one error."""
    return settings_of(read(file), day)


def settings_of(document: Document, day: date) -> Settings:
    """The settings in a file that has been read."""
    return _Reading(document, day).settings()


class _Reading:
    """One file being read, and what was wrong so far."""

    def __init__(self, document: Document, day: date) -> None:
        self._document = document
        self._day = day
        self._problems: list[Problem] = []

    def settings(self) -> Settings:
        content = self._document.content
        for name in content:
            if name not in TABLES:
                self._unknown((name,), name, TABLES)
        server = self._server(self._table("server"))
        told = self._fields(("telemetry",), self._table("telemetry"), TELEMETRY)
        telemetry = TelemetrySettings(**told)
        admin = self._admin(self._table("admin")) if "admin" in content else None
        found = self._fields(("cache",), self._table("cache"), CACHE)
        cache = Bounds(**found) if "cache" in content else None
        upstreams = self._each("upstream", self._upstream)
        models = self._each("model", self._model)
        customers = self._each("customer", self._customer) if "customer" in content else {}
        self._hang_together(server, upstreams, models)
        if self._problems:
            raise DocumentError(self._document.path, sorted(self._problems, key=_line))
        return Settings(
            server=server,
            telemetry=telemetry,
            admin=admin,
            cache=cache,
            upstreams=tuple(upstreams.values()),
            models=tuple(models.values()),
            customers=customers,
        )

    # tables

    def _server(self, table: Mapping[str, Any]) -> ServerSettings:
        found = self._fields(("server",), table, SERVER, LIMITS)
        host, port = found.pop("listen", ("127.0.0.1", 8080))
        limits = _of(Limits, found, LIMITS)
        return ServerSettings(host=host, port=port, limits=limits, **found)

    def _admin(self, table: Mapping[str, Any]) -> AdminSettings:
        found = self._fields(("admin",), table, ADMIN)
        usual = AdminSettings()
        host, port = found.pop("listen", (usual.host, usual.port))
        if "key" not in table:
            self._say(("admin",), "has no key", 'one that no client has, e.g. key = "env:DATAHALL_ADMIN_KEY"')
        return AdminSettings(host=host, port=port, **found)

    def _upstream(self, name: str, table: Mapping[str, Any]) -> UpstreamSettings | None:
        found = self._fields(("upstream", name), table, UPSTREAM, TIMEOUTS)
        timeouts = _of(Timeouts, found, TIMEOUTS)
        at = ("upstream", name)
        if "file" in table:
            for key in (key for key in table if key not in ("file", "concurrency", *TIMEOUTS)):
                self._say(
                    (*at, key), do_nothing([key], "the model is in the gateway's own process"), "leave it out"
                )
            found["api"] = INFERENCE
        elif "url" not in table:
            self._say(at, "has no url", 'e.g. url = "http://10.0.0.7:8000/v1", or file = "model.onnx"')
        return UpstreamSettings(name=name, timeouts=timeouts, **found)

    def _model(self, name: str, table: Mapping[str, Any]) -> ModelSettings | None:
        at = ("model", name)
        found = self._fields(at, table, MODEL, others=BESIDE)
        targets = self._targets(at, table, name)
        return ModelSettings(name=name, targets=targets, price=self._price(at, table), **found)

    def _customer(self, name: str, table: Mapping[str, Any]) -> KeyLimits:
        found = self._fields(("customer", name), table, CUSTOMER)
        budget: Spending | None = found.pop("budget", None)
        if budget is not None:
            found |= {"budget_nano_usd": nano_usd(str(budget.usd)), "period": budget.period}
        return KeyLimits(**found)

    def _targets(
        self, at: tuple[str, ...], table: Mapping[str, Any], name: str
    ) -> tuple[TargetSettings, ...]:
        place = (*at, "upstreams")
        listed = table.get("upstreams")
        if not isinstance(listed, list) or not listed:
            self._say(place, "a model has one upstream or more", 'e.g. upstreams = ["gpu-1", "gpu-2"]')
            return ()
        called = str(table.get("named", name))
        targets = []
        for one in listed:
            if isinstance(one, str):
                is_here = "file" in self._table("upstream").get(one, {})
                targets.append(TargetSettings(upstream=one, model=one if is_here else called))
            elif isinstance(one, dict) and "upstream" in one:
                targets.append(
                    TargetSettings(**{"model": called, "upstream": "", **self._fields(place, one, TARGET)})
                )
            else:
                self._say(
                    place, f"{values.shown(one)} is no upstream", "its name, or { upstream = …, model = … }"
                )
        return tuple(targets)

    def _price(self, at: tuple[str, ...], table: Mapping[str, Any]) -> Price:
        if "price" in table and "priced_as" in table:
            self._say((*at, "priced_as"), "stands beside price", "say one of them")
        if "priced_as" in table:
            from datahall.serve.ledger.prices import listed_price

            try:
                return listed_price(str(table["priced_as"]), self._day)
            except DatahallError as error:
                self._say((*at, "priced_as"), error.message, error.hint)
        price = table.get("price")
        if price is None:
            return FREE
        if not isinstance(price, dict):
            self._say((*at, "price"), f"{values.shown(price)} is no price", "{ input = 0.15, output = 0.60 }")
            return FREE
        found = self._fields((*at, "price"), price, PRICE)
        return Price(**{"cached_nano_usd": found.get("input_nano_usd", 0), **found})

    # what hangs together

    def _hang_together(
        self,
        server: ServerSettings,
        upstreams: Mapping[str, UpstreamSettings],
        models: Mapping[str, ModelSettings],
    ) -> None:
        if not server.has_auth and not is_loopback(server.host):
            self._say(
                ("server", "auth"),
                f"without keys anybody who reaches {server.host} could ask",
                "auth = true, or listen on 127.0.0.1",
            )
        if bool(server.certificate) != bool(server.certificate_key):
            self._say(("server",), "a certificate has a key", "certificate and certificate_key, or neither")
        for model in models.values():
            at = ("model", model.name)
            for target in model.targets:
                if target.upstream not in upstreams:
                    self._unknown((*at, "upstreams"), target.upstream, upstreams)
            self._idle(model)
            for key, others in (
                ("fallbacks", model.fallbacks),
                ("relief", (model.relief,) if model.relief else ()),
            ):
                for other in others:
                    if other not in models:
                        self._unknown((*at, key), other, models)
                    elif other == model.name:
                        self._say((*at, key), "a model does not stand in for itself", "another model")

    def _idle(self, model: ModelSettings) -> None:
        """Keys of a model that change nothing as they stand."""
        at = ("model", model.name)
        said = self._table("model").get(model.name, {})
        alone = len(model.targets) == 1
        costs = any(target.cost_nano_usd for target in model.targets)
        for key, is_idle, why in (
            ("routing", alone, "there is one upstream"),
            ("hedge", alone, "there is one upstream"),
            ("routing", not alone and model.routing == "cost" and not costs, "no upstream has a cost"),
            ("relief_at", not model.relief, "no model is the relief"),
        ):
            is_wrong = any(one.where == self._document.where(*at, key) for one in self._problems)
            if key in said and is_idle and not is_wrong:
                self._say((*at, key), do_nothing([key], why), "leave it out")

    # parts

    def _table(self, name: str) -> Mapping[str, Any]:
        found = self._document.content.get(name, {})
        if not isinstance(found, dict):
            self._say((name,), "is no table", f"[{name}]")
            return {}
        return found

    def _each(self, kind: str, make: Callable[[str, Mapping[str, Any]], Any]) -> dict[str, Any]:
        found = {}
        for name, table in self._table(kind).items():
            if not name.isascii() or not name.isprintable() or not 0 < len(name) <= MOST_NAME:
                self._say((kind, name), f"{name!r} is no name", f"1 to {MOST_NAME} plain characters")
            if isinstance(table, dict):
                found[name] = make(name, table)
            else:
                self._say((kind, name), "is no table", f"[{kind}.{name}]")
        if not found:
            self._say((kind,), f"there is no {kind}", f"[{kind}.NAME]")
        return found

    def _fields(
        self, at: tuple[str, ...], table: Mapping[str, Any], *keys: Keys, others: set[str] | None = None
    ) -> dict[str, Any]:
        known = {key: one for part in keys for key, one in part.items()}
        found = {}
        for key, value in table.items():
            if key in known:
                field, reader = known[key]
                try:
                    found[field] = reader(value)
                except Wrong as wrong:
                    self._say((*at, key), f"{key}: {wrong}")
            elif key not in (others or ()):
                self._unknown((*at, key), key, [*known, *(others or ())])
        return found

    def _unknown(self, at: tuple[str, ...], name: str, known: Any) -> None:
        near = nearest(name, known, 1)
        hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(sorted(known)) or 'none'}"
        self._say(at, f'nothing is called "{name}" here', hint)

    def _say(self, at: tuple[str, ...], message: str, hint: str = "") -> None:
        self._problems.append(Problem(self._document.where(*at), message, hint))


def _line(problem: Problem) -> int:
    return int(problem.where.rpartition(":")[2]) if ":" in problem.where else 0


def _of(kind: type[Any], found: dict[str, Any], keys: Keys) -> Any:
    """A struct of the fields that belong to it, taken out of those that were found."""
    mine = {field: found.pop(field) for field, _ in keys.values() if field in found}
    return msgspec.structs.replace(kind(), **mine)
