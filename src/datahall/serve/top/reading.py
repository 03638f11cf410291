"""What one look at a gateway's metrics says, in totals since it began."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from datahall.serve.top.latency import Latency
from datahall.serve.top.page import Page, Sample

# of what a customer has left, in the order of the fields of Left
OF_CUSTOMER = (
    "datahall_customer_budget_usd",
    "datahall_customer_budget_left_usd",
    "datahall_customer_requests_left",
    "datahall_customer_tokens_left",
)


class Total(msgspec.Struct, frozen=True, kw_only=True):
    """What a model or a key has come to."""

    num_requests: float = 0.0
    num_failed: float = 0.0
    tokens: float = 0.0
    output_tokens: float = 0.0  # of models alone
    charged_usd: float = 0.0
    first: Latency = Latency()
    whole: Latency = Latency()

    def since(self, before: Total) -> Total:
        return Total(
            num_requests=self.num_requests - before.num_requests,
            num_failed=self.num_failed - before.num_failed,
            tokens=self.tokens - before.tokens,
            output_tokens=self.output_tokens - before.output_tokens,
            charged_usd=self.charged_usd - before.charged_usd,
            first=self.first.since(before.first),
            whole=self.whole.since(before.whole),
        )


class Upstream(msgspec.Struct, frozen=True, kw_only=True):
    """How an upstream is."""

    is_ready: bool
    num_open: float
    num_waiting: float
    kv_used_fraction: float
    num_failed: float


class Left(msgspec.Struct, frozen=True, kw_only=True):
    """What a customer may still use; nothing where it has no such limit."""

    budget_usd: float | None
    budget_left_usd: float | None
    num_requests: float | None
    num_tokens: float | None


class Reading(msgspec.Struct, frozen=True, kw_only=True):
    """One look."""

    at_s: float  # on a clock of whoever looks
    began_s: float  # when the gateway did, since 1970
    models: Mapping[str, Total]
    keys: Mapping[tuple[str, str], Total]  # by name and customer
    customers: Mapping[str, Left]  # that have limits
    num_refused_for: Mapping[str, float]  # by why
    upstreams: Mapping[str, Upstream]
    num_waiting_for: Mapping[str, float]  # by model, of which no upstream has room
    num_open: float
    memory_bytes: float
    is_unwritten: bool


class _By:
    """The samples of a page, found by some labels."""

    def __init__(self, page: Page, *labels: str) -> None:
        self._page = page
        self._labels = labels
        self._groups: dict[str, dict[tuple[str, ...], list[Sample]]] = {}

    def of(self, name: str) -> dict[tuple[str, ...], list[Sample]]:
        """The samples of a name by the values of the labels."""
        found = self._groups.get(name)
        if found is None:
            found = self._groups[name] = {}
            for sample in self._page.get(name, ()):
                values = tuple(sample.labels.get(label, "") for label in self._labels)
                found.setdefault(values, []).append(sample)
        return found

    def one(self, name: str, values: tuple[str, ...]) -> float | None:
        found = self.of(name).get(values)
        return found[0].value if found else None

    def sum(self, name: str, values: tuple[str, ...] = (), **more: str) -> float:
        found = self.of(name).get(values, ())
        return sum(one.value for one in found if more.items() <= one.labels.items())

    def latency(self, name: str, values: tuple[str, ...]) -> Latency:
        found = self.of(f"{name}_bucket").get(values, ())
        return Latency.of(one for one in found if "le" in one.labels)


def reading_of(page: Page, at_s: float) -> Reading | None:
    """What a page says; nothing where it is not that of a gateway."""
    whole = _By(page)
    if not whole.of("process_start_time_seconds") or not whole.of("datahall_open_requests"):
        return None
    models, keys = _By(page, "model"), _By(page, "key", "customer")
    customers = _By(page, "customer")
    upstreams, codes = _By(page, "upstream"), _By(page, "code")
    lines = models.of("datahall_waiting_requests")
    return Reading(
        at_s=at_s,
        began_s=whole.sum("process_start_time_seconds"),
        models={
            name: _model(models, name) for (name,) in sorted({*models.of("datahall_requests_total"), *lines})
        },
        keys={
            (name, customer): _key(keys, (name, customer))
            for name, customer in sorted(keys.of("datahall_key_requests_total"))
        },
        customers={
            name: _left(customers, name)
            for (name,) in sorted({one for metric in OF_CUSTOMER for one in customers.of(metric)})
        },
        num_refused_for={
            code: codes.sum("datahall_refused_total", (code,))
            for (code,) in codes.of("datahall_refused_total")
        },
        upstreams={name: _upstream(upstreams, name) for (name,) in upstreams.of("datahall_upstream_ready")},
        num_waiting_for={name: models.sum("datahall_waiting_requests", (name,)) for (name,) in lines},
        num_open=whole.sum("datahall_open_requests"),
        memory_bytes=whole.sum("process_resident_memory_bytes"),
        is_unwritten=bool(whole.sum("datahall_ledger_unwritten")),
    )


def _model(by: _By, name: str) -> Total:
    of = (name,)
    output_tokens = by.sum("datahall_tokens_total", of, kind="completion")
    return Total(
        num_requests=by.sum("datahall_requests_total", of),
        num_failed=by.sum("datahall_requests_total", of, result="failed"),
        tokens=by.sum("datahall_tokens_total", of, kind="prompt") + output_tokens,
        output_tokens=output_tokens,
        charged_usd=by.sum("datahall_charged_usd_total", of),
        first=by.latency("gen_ai_server_time_to_first_token_seconds", of),
        whole=by.latency("gen_ai_server_request_duration_seconds", of),
    )


def _key(by: _By, of: tuple[str, str]) -> Total:
    return Total(
        num_requests=by.sum("datahall_key_requests_total", of),
        num_failed=by.sum("datahall_key_failures_total", of),
        tokens=by.sum("datahall_key_tokens_total", of),
        charged_usd=by.sum("datahall_key_charged_usd_total", of),
        first=by.latency("datahall_key_time_to_first_token_seconds", of),
        whole=by.latency("datahall_key_request_duration_seconds", of),
    )


def _left(by: _By, name: str) -> Left:
    return Left(
        **dict(zip(Left.__struct_fields__, (by.one(one, (name,)) for one in OF_CUSTOMER), strict=True))
    )


def _upstream(by: _By, name: str) -> Upstream:
    of = (name,)
    return Upstream(
        is_ready=bool(by.sum("datahall_upstream_ready", of)),
        num_open=by.sum("datahall_upstream_open_requests", of),
        num_waiting=by.sum("datahall_upstream_waiting_requests", of),
        kv_used_fraction=by.sum("datahall_upstream_kv_used_ratio", of),
        num_failed=by.sum("datahall_upstream_failures_total", of),
    )
