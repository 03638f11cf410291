"""What there is to say of a request that is over; no field is for what was asked or answered, or for a secret."""

from __future__ import annotations

from typing import Literal

import msgspec

from datahall.serve.ledger.money import NOTHING, Usage
from datahall.serve.telemetry.trace import Trace

Result = Literal["answered", "cached", "cancelled", "failed", "refused"]


class Told(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One request, after its end."""

    request_id: str
    route: str  # chat, completions, embeddings, messages, …
    result: Result
    status: int
    began_ns: int
    ended_ns: int
    first_ns: int = 0  # when the first of an answer came; 0: none did, or it came whole
    key: str = ""  # by name
    customer: str = ""
    model: str = ""  # as asked for; nothing where there is none of that name
    served: str = ""  # that answered
    upstream: str = ""
    code: str = ""  # of an error
    usage: Usage = NOTHING
    charged_nano_usd: int = 0
    saved_nano_usd: int = 0
    num_attempts: int = 0
    failures: tuple[str, ...] = ()  # of upstreams, where and why; for who runs the gateway
    trace: Trace | None = None
    peer: str = ""  # address that it came from

    @property
    def duration_s(self) -> float:
        return (self.ended_ns - self.began_ns) / 1e9

    @property
    def ttft_s(self) -> float:
        return (self.first_ns - self.began_ns) / 1e9

    @property
    def tpot_s(self) -> float:
        """Time of an output token after the first."""
        return (self.ended_ns - self.first_ns) / 1e9 / (self.usage.completion - 1)
