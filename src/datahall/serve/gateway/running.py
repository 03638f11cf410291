"""A gateway that runs, from its settings to a signal: every request is answered, and every bill written."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path
from random import Random
from time import time_ns

import msgspec

from datahall.errors import ServingError, UnknownNameError
from datahall.serve.config.settings import Settings
from datahall.serve.ending import serve_until_told
from datahall.serve.gateway.build import build_models, build_telemetry, close_all
from datahall.serve.gateway.gateway import Gateway
from datahall.serve.gateway.keeping import Answers
from datahall.serve.gateway.readings import of_lines, of_upstreams
from datahall.serve.http import Handler, serve
from datahall.serve.http.browsers import guarded, is_loopback
from datahall.serve.http.tls import server_tls
from datahall.serve.ledger.folder import Folder, usual_folder
from datahall.serve.ledger.group_commit import GroupCommit
from datahall.serve.ledger.key import Key, Limits
from datahall.serve.ledger.keys import create, declare_customers, key_named
from datahall.serve.ledger.ledger import Ledger
from datahall.serve.telemetry.readings import of_cache, of_customers, of_ledger, of_loop, of_process
from datahall.serve.upstreams.probe import watch

FIRST_KEY = "first"
ANYBODY = "anybody"  # whose account pays where no key is asked for


class Running(msgspec.Struct, frozen=True, kw_only=True):
    """What whoever started a gateway wants to know."""

    url: str
    models: tuple[str, ...]
    secret: (
        str  # of the first key, which is shown once; nothing where there are keys already, or none is needed
    )
    has_auth: bool


async def run_gateway(
    settings: Settings, when_ready: Callable[[Running], None], handlers: Mapping[str, Handler] | None = None
) -> bool:
    """Serve until SIGTERM or SIGINT; whether every request had ended within the grace."""
    random = Random()
    models, upstreams = build_models(settings, random, handlers or {})
    folder = Folder(Path(settings.server.state).expanduser() if settings.server.state else usual_folder())
    with folder.written():
        anybody = None if settings.server.has_auth else _anybody(folder)
        _declare(folder, settings.customers)
    ledger = Ledger(folder, {model.name: model.price for model in settings.models}, time_ns())
    commits = GroupCommit(ledger)
    readings = [
        *of_ledger(ledger),
        *of_customers(ledger),
        *of_process(),
        *of_loop(asyncio.get_running_loop()),
    ]
    telemetry = build_telemetry(settings.telemetry, readings)
    asking = asyncio.ensure_future(watch(upstreams))
    try:
        told = settings.server
        answers = None if settings.cache is None else Answers(settings.cache)
        gateway = Gateway(
            ledger,
            models,
            random,
            anybody=anybody,
            answers=answers,
            telemetry=telemetry,
            kept_fraction=settings.telemetry.kept_fraction,
            has_open_metrics=is_loopback(told.host) and settings.telemetry.metrics is None,
        )
        families = telemetry.instruments.families
        families += [*of_upstreams(upstreams, gateway.loop.time), *of_lines(models, gateway.budget)]
        if answers is not None:
            families += of_cache(answers.cache)
        tls = server_tls(told.certificate, told.certificate_key) if told.certificate else None
        front: Handler = gateway if told.has_auth else guarded(gateway, told.host)
        server = await serve(front, (told.host, told.port), told.limits, tls, gateway.lets_in)
        watched = settings.telemetry.metrics
        watching = None if watched is None else await serve(guarded(gateway.watch, watched[0]), watched)
        secret = ""
        if told.has_auth:  # not before it listens: a secret is shown once
            with folder.written():
                secret = _first_key(folder)
            ledger.reload(time_ns())
        host = f"[{told.host}]" if ":" in told.host else told.host
        scheme = "https" if tls else "http"
        running = Running(
            url=f"{scheme}://{host}:{server.port}",
            models=tuple(gateway.models),
            secret=secret,
            has_auth=told.has_auth,
        )

        def drain() -> None:
            gateway.is_draining = True

        is_whole = await serve_until_told(
            server, told.drain_s, when_ready=lambda: when_ready(running), when_told=drain
        )
        if watching is not None:
            await watching.close()
        return is_whole
    finally:
        asking.cancel()
        close_all(upstreams)
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(None, telemetry.stop)
        await loop.run_in_executor(None, commits.stop)


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
