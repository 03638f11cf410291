"""A key that an endpoint is asked with, which no command line shows."""

from __future__ import annotations

import os

from datahall.errors import ScenarioError


def secret_in(name: str) -> str:
    """The key that a variable of the environment holds; nothing where none is named."""
    if not name:
        return ""
    key = os.environ.get(name, "")
    if not key or not key.isprintable() or not key.isascii():
        raise ScenarioError(
            f"the variable {name} holds no key", field="key_from", hint=f"export {name}=…, and ask again"
        )
    return key
