"""What there is to say of a request that is over, for those who count, trace and bill."""

from __future__ import annotations

from typing import Literal, NamedTuple

from datahall.serve.gateway.question import Question
from datahall.serve.ledger.key import Key
from datahall.serve.ledger.ledger import Outcome
from datahall.serve.ledger.money import Usage


class Ended(NamedTuple):
    """One request, after its end."""

    request_id: str
    key: Key
    question: Question
    served: str  # the model that answered; nothing where none did
    status: int
    outcome: Outcome | Literal["cached"]
    usage: Usage
    charged_nano_usd: int
    began_ns: int
