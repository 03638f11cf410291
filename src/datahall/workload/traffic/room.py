"""Whether a prompt leaves room for an answer in a context; it loads nothing, so that one that does not goes at once."""

from __future__ import annotations

from datahall.errors import ScenarioError


def check_room(max_context: int, *, isl: int, system: int, document: int, varied: bool) -> None:
    """Refuse a prompt, made of these tokens, that leaves no room for one more; `varied`: others are longer."""
    parts = {"isl": isl, "system": system, "document": document}
    tokens = sum(parts.values())
    if not max_context or tokens < max_context:
        return
    raise ScenarioError(
        f"prompts of {tokens:,} tokens{' and more' if varied else ''} for a context of {max_context:,}",
        field=max(parts, key=parts.__getitem__),
        hint=f"at most {max_context - 1:,} tokens leave room for an answer; shorten the prompt, its system prompt or "
        "its documents, or choose a longer context or a model that has one",
    )
