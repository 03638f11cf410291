"""What a gateway is told, as structs. A duration is in seconds, a size in bytes, a price in nano-dollars."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from datahall.serve.cache.exact import Bounds
from datahall.serve.http import Limits, Timeouts
from datahall.serve.ledger.key import Limits as KeyLimits
from datahall.serve.ledger.money import FREE, Price
from datahall.serve.upstreams.upstream import Api


class ServerSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Where the gateway listens, whom it lets in and where it keeps its books."""

    host: str = "127.0.0.1"
    port: int = 8080
    has_auth: bool = True
    state: str = ""  # folder of the ledger; nothing: the usual one
    drain_s: float = 30.0  # that requests have to end when the gateway does
    certificate: str = ""
    certificate_key: str = ""
    limits: Limits = Limits()


class TelemetrySettings(msgspec.Struct, frozen=True, kw_only=True):
    """Where what is told of requests goes, beside /metrics."""

    metrics: tuple[str, int] | None = (
        None  # an address of their own; nothing: with the rest, on loopback alone
    )
    log: str = ""  # a file, or "-" for standard error
    traces: str = ""  # base URL of a collector that speaks OTLP over HTTP
    kept_fraction: float = 0.0  # of traces that nobody has begun before


class AdminSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Where who runs the gateway asks it."""

    host: str = "127.0.0.1"
    port: int = 8090
    key: str = ""  # where the admin's own key is: env:NAME or file:PATH


class UpstreamSettings(msgspec.Struct, frozen=True, kw_only=True):
    """A server that answers, and how it is reached."""

    name: str
    url: str = ""
    file: str = ""  # a model that runs in the gateway's own process, in place of a server
    api: Api = "openai"
    key: str = ""  # where its secret is: env:NAME or file:PATH
    most: int = 0  # requests at once; 0: any number
    health: str = ""
    metrics: str = ""
    authorities: str = ""  # a file of certificates to trust
    timeouts: Timeouts = Timeouts()


class TargetSettings(msgspec.Struct, frozen=True, kw_only=True):
    """An upstream of a model."""

    upstream: str
    model: str  # as it is called there
    cost_nano_usd: int = 0  # of a million tokens there, by which "cost" routes


class ModelSettings(msgspec.Struct, frozen=True, kw_only=True):
    """A model that may be asked for."""

    name: str
    targets: tuple[TargetSettings, ...]
    routing: str = "least-outstanding"
    fallbacks: tuple[str, ...] = ()
    relief: str = ""
    relief_at: int = 8
    num_retries: int = 2
    hedge_s: float = 0.0
    deadline_s: float = 600.0
    queue_s: float = 30.0
    longest_tokens: int = 4096  # of an answer whose length a request leaves to the model
    most_waiting: int = 256
    price: Price = FREE


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """All that a gateway is told."""

    server: ServerSettings = ServerSettings()
    telemetry: TelemetrySettings = TelemetrySettings()
    admin: AdminSettings | None = None  # nothing: nowhere
    cache: Bounds | None = None  # of answers that are given again; nothing: none is
    upstreams: tuple[UpstreamSettings, ...] = ()
    models: tuple[ModelSettings, ...] = ()
    customers: Mapping[str, KeyLimits] = {}  # what their keys share, written into the books at the start
