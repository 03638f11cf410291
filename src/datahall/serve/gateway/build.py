"""A gateway out of its settings: upstreams with their secrets, pools, models and the ledger."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random

import msgspec

from datahall.errors import ServingError
from datahall.serve.config.settings import ModelSettings, Settings, TelemetrySettings, UpstreamSettings
from datahall.serve.gateway.model import Model
from datahall.serve.http import Client, Handler, Origin
from datahall.serve.http.deadlines import Deadlines
from datahall.serve.http.tls import client_tls
from datahall.serve.telemetry.log import Log
from datahall.serve.telemetry.metrics import Family
from datahall.serve.telemetry.otlp import Exporter
from datahall.serve.telemetry.telemetry import Telemetry
from datahall.serve.upstreams.pool import Pool
from datahall.serve.upstreams.reach import Inside
from datahall.serve.upstreams.routing import RULES, Target
from datahall.serve.upstreams.upstream import Upstream

ANTHROPIC_VERSION = "2023-06-01"


def build_models(
    settings: Settings, random: Random, handlers: Mapping[str, Handler]
) -> tuple[list[Model], list[Upstream]]:
    """The models that are offered and the upstreams behind them; `handlers` answer for upstreams of this process."""
    deadlines = Deadlines(asyncio.get_running_loop())
    upstreams = {one.name: build_upstream(one, random, deadlines) for one in settings.upstreams if one.url}
    mounted = {one.name: one for one in settings.upstreams if one.file}
    for name, handler in handlers.items():
        upstreams[name] = (
            build_mounted(mounted[name], handler, random)
            if name in mounted
            else Upstream(name, Inside(handler), random)
        )
    return [build_model(one, upstreams) for one in settings.models], [*upstreams.values()]


def build_upstream(settings: UpstreamSettings, random: Random, deadlines: Deadlines) -> Upstream:
    """One upstream, with the secret that it is asked with."""
    origin = Origin.of(settings.url)
    tls = client_tls(settings.authorities) if origin.is_tls else None
    client = Client(msgspec.structs.replace(origin, base=""), settings.timeouts, tls, deadlines)
    return Upstream(
        settings.name,
        client,
        random,
        api=settings.api,
        base=origin.base,
        headers=headers_of(settings),
        most=settings.most,
        health_path=settings.health,
        metrics_path=settings.metrics,
        timeouts=settings.timeouts,
    )


def headers_of(settings: UpstreamSettings) -> tuple[tuple[str, str], ...]:
    """What an upstream is told with every request, its secret as it is now among it."""
    is_anthropic = settings.api == "anthropic"
    headers: tuple[tuple[str, str], ...] = (("anthropic-version", ANTHROPIC_VERSION),) if is_anthropic else ()
    if settings.key:
        secret = secret_of(settings.key, f"the upstream {settings.name}")
        headers += (("x-api-key", secret) if is_anthropic else ("authorization", f"Bearer {secret}"),)
    return headers


def build_mounted(settings: UpstreamSettings, handler: Handler, random: Random) -> Upstream:
    """A model of a file that runs in this process."""
    reach, timeouts = Inside(handler), settings.timeouts
    return Upstream(
        settings.name, reach, random, api=settings.api, base="", most=settings.most, timeouts=timeouts
    )


def build_model(settings: ModelSettings, upstreams: Mapping[str, Upstream]) -> Model:
    """One model, with its pool."""
    targets = [Target(upstreams[one.upstream], one.model, one.cost_nano_usd) for one in settings.targets]
    return Model(
        name=settings.name,
        price=settings.price,
        pool=Pool(settings.name, targets, RULES[settings.routing], settings.most_waiting),
        fallbacks=settings.fallbacks,
        relief=settings.relief,
        relief_at=settings.relief_at,
        num_retries=settings.num_retries,
        hedge_s=settings.hedge_s,
        deadline_s=settings.deadline_s,
        queue_s=settings.queue_s,
        longest_tokens=settings.longest_tokens,
    )


def build_telemetry(settings: TelemetrySettings, readings: Sequence[Family]) -> Telemetry:
    """Where requests are told of; a log is added to, and a collector that is away is never waited for."""
    log = exporter = None
    if settings.log:
        try:
            log = Log(
                sys.stderr.fileno() if settings.log == "-" else _opened(Path(settings.log).expanduser())
            )
        except OSError as error:
            raise ServingError(f"the log {settings.log} cannot be written: {error.strerror}") from None
    if settings.traces:
        exporter = Exporter(settings.traces, "datahall")
    return Telemetry(log, exporter, readings)


def _opened(path: Path) -> int:
    """A file to add to; a pipe must have its reader."""
    return os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NONBLOCK, 0o644)


def secret_of(place: str, whose: str) -> str:
    """A secret from where it is kept; one line, as it becomes a header."""
    kind, _, name = place.partition(":")
    if kind == "env":
        secret = os.environ.get(name, "")
        problem = f"the variable {name} is not set"
    else:
        try:
            secret = Path(name).expanduser().read_text(encoding="utf-8")
            problem = f"{name} is empty"
        except (OSError, UnicodeDecodeError) as error:
            secret, problem = "", f"{name} cannot be read: {error}"
    secret = secret.strip()
    if not secret or not secret.isprintable() or not secret.isascii():
        raise ServingError(f"no secret for {whose}: {problem if not secret else 'it is no single word'}")
    return secret


def close_all(upstreams: Sequence[Upstream]) -> None:
    """Let go of every connection."""
    for upstream in upstreams:
        upstream.reach.close()
