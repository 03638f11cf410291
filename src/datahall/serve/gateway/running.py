"""A gateway that runs, from its settings to a signal: every request is answered, and every bill written."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from random import Random
from time import time_ns
from typing import NamedTuple

import msgspec

from datahall.errors import ServingError, UnknownNameError
from datahall.serve.config.settings import Settings
from datahall.serve.ending import Say, reloading, serve_until_told
from datahall.serve.gateway.admin.admin import Admin
from datahall.serve.gateway.admin.described import Reloaded
from datahall.serve.gateway.admin.fleet import Fleet
from datahall.serve.gateway.build import build_telemetry, secret_of
from datahall.serve.gateway.gateway import Gateway
from datahall.serve.gateway.keeping import Answers
from datahall.serve.gateway.readings import of_lines, of_upstreams
from datahall.serve.http import Handler, Server, serve
from datahall.serve.http.browsers import guarded, is_loopback
from datahall.serve.http.tls import server_tls
from datahall.serve.ledger.desk import desk
from datahall.serve.ledger.folder import Folder, usual_folder
from datahall.serve.ledger.group_commit import GroupCommit
from datahall.serve.ledger.key import Key, Limits
from datahall.serve.ledger.keys import create, declare_customers, key_named
from datahall.serve.ledger.ledger import Ledger
from datahall.serve.ledger.money import Price
from datahall.serve.telemetry.readings import of_cache, of_customers, of_ledger, of_loop, of_process

FIRST_KEY = "first"
ANYBODY = "anybody"  # whose account pays where no key is asked for


class Running(msgspec.Struct, frozen=True, kw_only=True):
    """What whoever started a gateway wants to know."""

    url: str
    admin_url: str  # nothing where there is none
    models: tuple[str, ...]
    secret: (
        str  # of the first key, which is shown once; nothing where there are keys already, or none is needed
    )
    has_auth: bool


class Anew(NamedTuple):
    """How a file is read again, and who is told what came of it where nobody asked for an answer."""

    read: Callable[[], Settings]
    say: Say


async def run_gateway(
    settings: Settings,
    when_ready: Callable[[Running], None],
    handlers: Mapping[str, Handler] | None = None,
    anew: Anew | None = None,
) -> bool:
    """Serve until SIGTERM or SIGINT; whether every request had ended within the grace."""
    random, told = Random(), settings.server
    admin_key = "" if settings.admin is None else secret_of(settings.admin.key, "the admin API")
    fleet = Fleet(settings, random, handlers or {})
    folder = Folder(Path(told.state).expanduser() if told.state else usual_folder())
    with folder.written():
        anybody = None if told.has_auth else _anybody(folder)
        _declare(folder, settings.customers)
    ledger = Ledger(folder, _prices(settings), time_ns())
    commits = GroupCommit(ledger)
    readings = [
        *of_ledger(ledger),
        *of_customers(ledger),
        *of_process(),
        *of_loop(asyncio.get_running_loop()),
    ]
    telemetry = build_telemetry(settings.telemetry, readings)
    beside: list[Server] = []
    try:
        answers = None if settings.cache is None else Answers(settings.cache)
        gateway = Gateway(
            ledger,
            fleet.models,
            random,
            anybody=anybody,
            answers=answers,
            telemetry=telemetry,
            kept_fraction=settings.telemetry.kept_fraction,
            has_open_metrics=is_loopback(told.host) and settings.telemetry.metrics is None,
        )
        families = telemetry.instruments.families
        families += [
            *of_upstreams(fleet.upstreams, gateway.loop.time),
            *of_lines(fleet.models, gateway.budgets),
        ]
        if answers is not None:
            families += of_cache(answers.cache)

        async def reload() -> Reloaded:
            return await _reload(gateway, fleet, folder, anew)

        tls = server_tls(told.certificate, told.certificate_key) if told.certificate else None
        front: Handler = gateway if told.has_auth else guarded(gateway, told.host)
        server = await serve(front, (told.host, told.port), told.limits, tls, gateway.lets_in)
        watched = settings.telemetry.metrics
        if watched is not None:
            beside.append(await serve(guarded(gateway.watch, watched[0]), watched))
        if (asked := settings.admin) is not None:
            admin = Admin(gateway, fleet, admin_key, partial(desk, told.state), reload)
            over = None if is_loopback(asked.host) else tls
            at = (asked.host, asked.port)
            beside.append(await serve(guarded(admin, asked.host), at, told.limits, over, admin.lets_in))
        secret = ""
        if told.has_auth:  # not before it listens: a secret is shown once
            with folder.written():
                secret = _first_key(folder)
            ledger.reload(time_ns())
        running = Running(
            url=_url(told.host, server.port, tls is not None),
            admin_url="" if asked is None else _url(asked.host, beside[-1].port, over is not None),
            models=tuple(gateway.models),
            secret=secret,
            has_auth=told.has_auth,
        )

        def drain() -> None:
            gateway.is_draining = True

        with reloading(reload, anew.say, "the file") if anew is not None else nullcontext():
            is_whole = await serve_until_told(
                server, told.drain_s, when_ready=lambda: when_ready(running), when_told=drain
            )
        for one in beside:
            await one.close()
        await gateway.end_streams()
        return is_whole
    finally:
        fleet.close()
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(None, telemetry.stop)
        await loop.run_in_executor(None, commits.stop)


async def _reload(gateway: Gateway, fleet: Fleet, folder: Folder, anew: Anew | None) -> Reloaded:
    """Be what the file says by now, between two requests; where it cannot be, nothing is changed."""
    if anew is None:
        raise ServingError("there is no file to read anew", hint="datahall serve gateway.toml")
    loop = asyncio.get_running_loop()
    settings = await loop.run_in_executor(None, anew.read)
    told = fleet.change(settings)
    gateway.ledger.sell(_prices(settings))
    if told.models:
        gateway.offer(fleet.models)

    def declare() -> None:
        with folder.written():
            _declare(folder, settings.customers)
            gateway.ledger.reload(time_ns())

    await loop.run_in_executor(None, declare)
    return told


def _prices(settings: Settings) -> dict[str, Price]:
    return {model.name: model.price for model in settings.models}


def _url(host: str, port: int, is_tls: bool) -> str:
    named = f"[{host}]" if ":" in host else host
    return f"{'https' if is_tls else 'http'}://{named}:{port}"


def _anybody(folder: Folder) -> Key:
    """Whose account pays for who has no key."""
    store = folder.store()
    try:
        try:
            return key_named(store, ANYBODY)
        except UnknownNameError:
            return create(store, folder.pepper(store), name=ANYBODY, now_ns=time_ns())[0]
    finally:
        store.close()


def _declare(folder: Folder, customers: Mapping[str, Limits]) -> None:
    """Give customers the limits that the file says."""
    if customers:
        store = folder.store()
        try:
            declare_customers(store, customers)
        finally:
            store.close()


def _first_key(folder: Folder) -> str:
    """The secret of a key that is made where there is none yet; nothing where there are some."""
    store = folder.store()
    try:
        keys, _ = store.keys()
        if any(key.name != ANYBODY and not key.revoked_ns for key in keys):
            return ""
        return create(store, folder.pepper(store), name=FIRST_KEY, now_ns=time_ns())[1]
    except ServingError:  # it was revoked, and its name is taken for good
        return ""
    finally:
        store.close()
