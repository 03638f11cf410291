"""Speculative decoding: tokens drafted cheaply, then verified by the model in one pass.

References: Leviathan et al. (2023), Fast inference from transformers via speculative decoding, equation 1; DeepSeek-V3
(2024), section 2.2, for multi-token prediction.
"""

from __future__ import annotations

import msgspec

from datahall.catalog.entries.model import Model
from datahall.errors import ScenarioError
from datahall.inference.engine.replica import Replica, Speculation
from datahall.scenario.words import FREE_DRAFT, OWN_LAYER


def expected_tokens(acceptance: float, num_draft: int) -> float:
    """Tokens that one step yields when each drafted one is kept with chance a, given all before it were.

        E = (1 − a^(n+1)) / (1 − a)

    >>> round(expected_tokens(0.7, 3), 3), expected_tokens(0.7, 0), expected_tokens(1.0, 3)
    (2.533, 1.0, 4.0)
    """
    if acceptance >= 1.0:
        return float(num_draft + 1)
    return (1.0 - acceptance ** (num_draft + 1)) / (1.0 - acceptance)


def tokens_per_step(speculation: Speculation | None) -> float:
    """Tokens that a decoding sequence gets in a step."""
    if speculation is None:
        return 1.0
    if not (0.0 <= speculation.acceptance <= 1.0 and speculation.num_draft >= 0):
        raise ScenarioError(
            f"{speculation.num_draft} drafted tokens kept with chance {speculation.acceptance:g} make no sense",
            hint="a chance from 0 to 1, and 0 or more tokens",
        )
    return expected_tokens(speculation.acceptance, speculation.num_draft)


def num_verified(speculation: Speculation | None) -> int:
    """New tokens that a decoding sequence brings into a step."""
    return 1 if speculation is None else speculation.num_draft + 1


def draft_model(replica: Replica) -> Model | None:
    """What drafts on the replica's own chips: the model's last layer and its head, another model, or nothing."""
    speculation = replica.speculation
    if speculation is None or speculation.num_draft == 0 or speculation.draft == FREE_DRAFT:
        return None
    if speculation.draft != OWN_LAYER:
        assert speculation.model is not None, f"{speculation.draft} comes with its model"
        return speculation.model
    model = replica.model
    return msgspec.structs.replace(
        model, name=f"{model.name}-mtp", num_layers=1, layers=model.layers[-1:], facts={}
    )


def shares_tables(replica: Replica) -> bool:
    """Whether what drafts uses the model's own token table and head."""
    return replica.speculation is not None and replica.speculation.draft == OWN_LAYER
