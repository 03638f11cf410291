"""The metrics of a gateway, and how a request that is over counts in them.

Names of what a server of models shows are those of OpenTelemetry's conventions for generative AI, with their buckets
(github.com/open-telemetry/semantic-conventions-genai, read 2026-11-15); the rest begins with `datahall_`.  Units are
base units: seconds, bytes, dollars.
"""

from __future__ import annotations

from typing import get_args

import msgspec

from datahall.serve.ledger.money import NANO
from datahall.serve.telemetry.metrics import Count, Counter, Distribution, Family, Histogram, exposed
from datahall.serve.telemetry.told import Result, Told

DURATIONS_S = (0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92)
FIRST_TOKENS_S = (
    0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0,
)  # fmt: skip
PER_TOKEN_S = (0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0, 2.5)
MOST_KEYS = 200  # that are shown by name; the ledger has all of them
UNKNOWN = "unknown"


class _OfModel(msgspec.Struct, frozen=True):
    """The children of one model on one route, bound."""

    results: dict[str, Count]
    duration: Distribution
    first: Distribution
    per_token: Distribution
    prompt: Count
    cached: Count
    completion: Count
    charged: Count
    saved: Count
    attempts: Count


class _OfKey(msgspec.Struct, frozen=True):
    requests: Count
    failures: Count
    tokens: Count
    charged: Count
    duration: Distribution
    first: Distribution


class Instruments:
    """Families, and their children by what a request is of."""

    def __init__(self) -> None:
        model, route = ("model",), ("route", "model")
        self._requests = Counter(
            "datahall_requests_total", "Requests that are over, by how they ended.", (*route, "result")
        )
        self._refused = Counter("datahall_refused_total", "Requests that were not let in, by why.", ("code",))
        self._duration = Histogram(
            "gen_ai_server_request_duration_seconds",
            "From a request to the end of its answer.",
            DURATIONS_S,
            route,
        )
        self._first = Histogram(
            "gen_ai_server_time_to_first_token_seconds", "From a request to the first of its answer.",
            FIRST_TOKENS_S, model,
        )  # fmt: skip
        self._per_token = Histogram(
            "gen_ai_server_time_per_output_token_seconds",
            "Of each token after the first.",
            PER_TOKEN_S,
            model,
        )
        self._tokens = Counter(
            "datahall_tokens_total",
            "Tokens, by kind: prompt, those of it that a prefix cache had, completion.",
            ("model", "kind"),
        )
        self._charged = Counter(
            "datahall_charged_usd_total", "What keys were charged, in dollars.", model, unit=1 / NANO
        )
        self._saved = Counter(
            "datahall_saved_usd_total", "What the cache of answers spared, in dollars.", model, unit=1 / NANO
        )
        self._attempts = Counter(
            "datahall_attempts_total", "Calls of upstreams, retried and hedged ones with them.", model
        )
        of_key = ("key", "customer")
        self._key_requests = Counter(
            "datahall_key_requests_total", "Requests of a key.", of_key, most=MOST_KEYS
        )
        self._key_failures = Counter(
            "datahall_key_failures_total", "Requests of a key that failed.", of_key, most=MOST_KEYS
        )
        self._key_tokens = Counter("datahall_key_tokens_total", "Tokens of a key.", of_key, most=MOST_KEYS)
        self._key_charged = Counter(
            "datahall_key_charged_usd_total", "What a key was charged, in dollars.", of_key,
            unit=1 / NANO, most=MOST_KEYS,
        )  # fmt: skip
        self._key_duration = Histogram(
            "datahall_key_request_duration_seconds", "From a request of a key to the end of its answer.",
            DURATIONS_S, of_key, most=MOST_KEYS,
        )  # fmt: skip
        self._key_first = Histogram(
            "datahall_key_time_to_first_token_seconds", "From a request of a key to the first of its answer.",
            FIRST_TOKENS_S, of_key, most=MOST_KEYS,
        )  # fmt: skip
        self.families: list[Family] = [
            self._requests, self._refused, self._duration, self._first, self._per_token, self._tokens, self._charged,
            self._saved, self._attempts, self._key_requests, self._key_failures, self._key_tokens, self._key_charged,
            self._key_duration, self._key_first,
        ]  # fmt: skip
        self._models: dict[tuple[str, str], _OfModel] = {}
        self._keys: dict[str, _OfKey] = {}

    def count(self, told: Told) -> None:
        """Count a request that is over."""
        if told.result == "refused" or (told.result == "failed" and not told.num_attempts):
            self._refused.of(told.code or UNKNOWN).value += 1
            if not told.model:  # names that anybody may make up are no labels
                return
        model = self._of_model(told.route, told.served or told.model)
        model.results[told.result].value += 1
        model.attempts.value += told.num_attempts
        usage = told.usage
        is_timed = told.result in ("answered", "cancelled")
        if is_timed:
            model.duration.observe(told.duration_s)
            if told.first_ns:
                model.first.observe(told.ttft_s)
                if usage.completion > 1:
                    model.per_token.observe(told.tpot_s)
        model.prompt.value += usage.prompt
        model.cached.value += usage.cached
        model.completion.value += usage.completion
        model.charged.value += told.charged_nano_usd
        model.saved.value += told.saved_nano_usd
        if told.key:
            key = self._keys.get(told.key) or self._of_key(told.key, told.customer)
            key.requests.value += 1
            key.failures.value += told.result == "failed"
            if is_timed:
                key.duration.observe(told.duration_s)
                if told.first_ns:
                    key.first.observe(told.ttft_s)
            key.tokens.value += usage.tokens
            key.charged.value += told.charged_nano_usd

    def exposed(self) -> bytes:
        """All of it as a scraper reads it."""
        return exposed(self.families)

    def _of_model(self, route: str, model: str) -> _OfModel:
        found = self._models.get((route, model))
        if found is None:
            found = self._models[route, model] = _OfModel(
                results={result: self._requests.of(route, model, result) for result in get_args(Result)},
                duration=self._duration.of(route, model),
                first=self._first.of(model),
                per_token=self._per_token.of(model),
                prompt=self._tokens.of(model, "prompt"),
                cached=self._tokens.of(model, "cached"),
                completion=self._tokens.of(model, "completion"),
                charged=self._charged.of(model),
                saved=self._saved.of(model),
                attempts=self._attempts.of(model),
            )
        return found

    def _of_key(self, key: str, customer: str) -> _OfKey:
        found = _OfKey(
            requests=self._key_requests.of(key, customer),
            failures=self._key_failures.of(key, customer),
            tokens=self._key_tokens.of(key, customer),
            charged=self._key_charged.of(key, customer),
            duration=self._key_duration.of(key, customer),
            first=self._key_first.of(key, customer),
        )
        if len(self._keys) < MOST_KEYS:
            self._keys[key] = found
        return found
