"""Sequences longer than a model states: said by every answer alike, and answered all the same.

People do train and serve beyond what a `config.json` states, with positions that are scaled or interpolated, so it is
no error; what it does to the answers of the model is not what is computed here.
"""

from __future__ import annotations

from datahall.catalog.entries.model import Model


def context_notes(model: Model, num_tokens: int) -> tuple[str, ...]:
    """What to say of sequences of so many tokens; nothing where the model states as many."""
    if num_tokens <= model.max_context:
        return ()
    return (
        f"{num_tokens:,} tokens is beyond the {model.max_context:,} that {model.name} states: counted as if its "
        "positions were extended, and what it then answers is not weighed",
    )
