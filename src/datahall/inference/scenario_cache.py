"""What a serving scenario says of the cache of whole answers in front of its fleet."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite

from datahall.inference.fleet.response_cache import ExactTier, Questions, ResponseCache, SemanticTier
from datahall.inference.scenario_file import Elsewhere, RateRule, Raw, Rule, ServingReader, number, whole
from datahall.workload.traffic.traffic import Traffic

TIERS = ("process", "shared", "semantic")
CACHE: dict[str, Rule] = {
    "questions": Rule("count", 10_000.0, least=1),
    "zipf": Rule("ratio", 0.9),
    "unique": Rule("fraction", 0.5),
    "rate": RateRule("ratio", above=True),
    **{tier: Elsewhere("text") for tier in TIERS},
}
PROCESS = {
    "entries": Rule("count", 1_000.0, least=1),
    "ttl": Rule("s", 300.0),
    "caches": Rule("count", 1.0, least=1),
    "lookup": Rule("s", 50e-6),
}
SHARED = {
    "entries": Rule("count", 100_000.0, least=1),
    "ttl": Rule("s", 3600.0),
    "lookup": Rule("s", 1e-3),
}
SEMANTIC = {"hits": Rule("fraction", 0.0, required=True), "lookup": Rule("s", 30e-3)}
NONE = ExactTier(num_entries=0)


def read_cache(reader: ServingReader, streams: Sequence[Traffic]) -> ResponseCache | None:
    """The tiers that have a table; the others are not there."""
    raw = reader.document.content.get("cache")
    if raw is None:
        return None
    values = reader.table(("cache",), raw, CACHE)
    if not isinstance(raw, dict):
        return None
    if not any(tier in raw for tier in TIERS):
        reader.problem(
            ("cache",), "a cache without tiers", "write [cache.process], [cache.shared] or [cache.semantic]"
        )
        return None
    rate = offered(streams) if values["rate"] is None else number(values["rate"])
    if not rate and streams:
        first = next(tier for tier in TIERS if tier in raw)
        reader.problem(
            ("cache", first), "how often questions come is not known", "requests/s in [cache]: rate = 20"
        )
        return None
    asked = Questions(
        rate_per_s=rate or 1.0,
        num=whole(values["questions"]),
        zipf_factor=number(values["zipf"]),
        unique_fraction=number(values["unique"]),
    )
    process, shared, semantic = (
        _exact(reader, raw, "process", PROCESS),
        _exact(reader, raw, "shared", SHARED),
        SemanticTier(),
    )
    if "semantic" in raw:
        meant = reader.table(("cache", "semantic"), raw["semantic"], SEMANTIC)
        semantic = SemanticTier(hit_fraction=number(meant["hits"]), lookup_s=number(meant["lookup"]))
    return reader.attempt(
        ("cache",), lambda: ResponseCache(questions=asked, process=process, shared=shared, semantic=semantic)
    )


def _exact(reader: ServingReader, raw: Raw, tier: str, rules: dict[str, Rule]) -> ExactTier:
    if tier not in raw:
        return NONE
    values = reader.table(("cache", tier), raw[tier], rules)
    return ExactTier(
        num_entries=whole(values["entries"]),
        ttl_s=number(values["ttl"]),
        num_caches=whole(values.get("caches", 1.0)),
        lookup_s=number(values["lookup"]),
    )


def offered(streams: Sequence[Traffic]) -> float:
    """First turns per second of all streams; 0 where a trace, users or a rush do not tell."""
    rates = [one.arrivals.rate_per_s if one.arrivals else 0.0 for one in streams]
    return sum(rates) if all(rate and isfinite(rate) for rate in rates) else 0.0
