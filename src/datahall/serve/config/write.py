"""Writes `gateway.toml`: settings under the keys that it is read by, so that what is read back is what was meant.

Whatever is as it usually is stays out of the file.
"""

from __future__ import annotations

from typing import Any

import msgspec

from datahall.planner.artefacts.options import Value
from datahall.planner.artefacts.toml import toml
from datahall.serve.cache.exact import Bounds
from datahall.serve.config import values
from datahall.serve.config.read import (
    CACHE,
    LIMITS,
    MODEL,
    PRICE,
    SERVER,
    TARGET,
    TELEMETRY,
    TIMEOUTS,
    UPSTREAM,
    Keys,
)
from datahall.serve.config.settings import (
    ModelSettings,
    ServerSettings,
    Settings,
    TelemetrySettings,
    UpstreamSettings,
)
from datahall.serve.config.values import Reader
from datahall.serve.ledger.money import FREE, usd

Tables = dict[str, Value]


def written(settings: Settings) -> str:
    """A file that reads as these settings."""
    return toml({
        "server": _server(settings.server),
        "telemetry": _keys(settings.telemetry, TelemetrySettings(), TELEMETRY),
        "cache": _cache(settings.cache) if settings.cache is not None else {},
        "upstream": {one.name: _upstream(one) for one in settings.upstreams},
        "model": {one.name: _model(one) for one in settings.models},
    })  # fmt: skip


def _server(said: ServerSettings) -> Tables:
    usual = ServerSettings()
    place, key = (said.host, said.port), "listen"
    listen: Tables = {} if place == (usual.host, usual.port) else {key: _value(*SERVER[key], place)}
    return {**listen, **_keys(said, usual, SERVER), **_keys(said.limits, usual.limits, LIMITS)}


def _cache(said: Bounds) -> Tables:
    """All of it, as the table alone already says that there is a cache; a bound of nothing is none."""
    return {key: value for key, value in _keys(said, None, CACHE).items() if value}


def _upstream(said: UpstreamSettings) -> Tables:
    usual = UpstreamSettings(name=said.name)
    if said.file:  # which says the language alone
        usual = msgspec.structs.replace(usual, api=said.api)
    return {**_keys(said, usual, UPSTREAM), **_keys(said.timeouts, usual.timeouts, TIMEOUTS)}


def _model(said: ModelSettings) -> Tables:
    names = {one.model for one in said.targets}
    alike = len(names) == 1 and not any(one.cost_nano_usd for one in said.targets)
    found: Tables = {
        "upstreams": [one.upstream if alike else _keys(one, None, TARGET) for one in said.targets],
        **({"named": names.pop()} if alike and names != {said.name} else {}),
        **_keys(said, ModelSettings(name=said.name, targets=said.targets), MODEL),
    }
    if said.price != FREE:
        as_input = msgspec.structs.replace(FREE, cached_nano_usd=said.price.input_nano_usd)
        found["price"] = _keys(said.price, as_input, PRICE)
    return found


def _keys(said: msgspec.Struct, usual: msgspec.Struct | None, keys: Keys) -> Tables:
    """The keys of a struct's fields, but for those that are as usual."""
    found: Tables = {}
    for key, (field, reader) in keys.items():
        if field not in said.__struct_fields__:
            continue
        value = getattr(said, field)
        if usual is None or value != getattr(usual, field):
            found[key] = _value(field, reader, value)
    return found


def _value(field: str, reader: Reader, value: Any) -> Value:
    """A value as a person writes it, by the unit that ends the name of its field."""
    if reader is values.address:
        host, port = value
        return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    if field.endswith("_nano_usd"):
        return usd(value)
    if field.endswith("_s"):
        return f"{float(value)!r}".removesuffix(".0") + "s"
    return list(value) if isinstance(value, tuple) else value
