"""How a request that is not answered is refused: OpenAI's form of an error, and others' on their own routes."""

from __future__ import annotations

from math import ceil

import msgspec

from datahall.scenario.words import Route
from datahall.serve.http import Exchange, error_body
from datahall.serve.http.sse import event
from datahall.serve.ledger.account import Refusal
from datahall.serve.modelserver.refused import InferenceRefusal, PredictRefusal
from datahall.serve.upstreams.routing import Target

_ANTHROPIC = {
    400: "invalid_request_error", 401: "authentication_error", 402: "billing_error", 403: "permission_error",
    404: "not_found_error", 413: "request_too_large", 429: "rate_limit_error", 503: "overloaded_error",
    504: "timeout_error", 529: "overloaded_error",
}  # fmt: skip


class Refused(Exception):
    """A request ends here, with a status and what to do about it."""

    def __init__(
        self,
        status: int,
        message: str,
        code: str,
        *,
        param: str | None = None,
        retry_after_s: float | None = None,
        target: Target | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.code = code
        self.param = param
        self.retry_after_s = retry_after_s
        self.target = target  # who was asked last

    @classmethod
    def by_ledger(cls, refusal: Refusal) -> Refused:
        return cls(refusal.status, refusal.message, refusal.code, retry_after_s=refusal.retry_after_s)

    def body(self, kind: Route | None = None) -> bytes:
        """As who asks so reads it."""
        if kind == "predict":
            return msgspec.json.encode(PredictRefusal(self.message))
        if kind == "infer":
            return msgspec.json.encode(InferenceRefusal(self.message))
        if kind == "messages":
            wrong = _ANTHROPIC.get(self.status, "api_error")
            return msgspec.json.encode({"type": "error", "error": {"type": wrong, "message": self.message}})
        wrong = "insufficient_quota" if self.code == "insufficient_quota" else ""
        return error_body(self.status, self.message, code=self.code, kind=wrong, param=self.param)

    def event(self, kind: Route) -> bytes:
        """The last event of a stream that broke off."""
        return event(self.body(kind), "error" if kind == "messages" else "")

    def send(self, exchange: Exchange, request_id: str, kind: Route | None = None) -> None:
        headers = [("x-request-id", request_id)]
        if self.status == 401:
            headers.append(("www-authenticate", "Bearer"))
        if self.retry_after_s is not None:
            headers.append(("retry-after", str(max(1, ceil(self.retry_after_s)))))
        exchange.send(self.status, self.body(kind), headers)


def unknown(model: str) -> Refused:
    return Refused(404, f"the model {model[:200]!r} does not exist", "model_not_found", param="model")
