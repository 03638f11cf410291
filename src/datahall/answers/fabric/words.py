"""Text as a sentence begins with it."""

from __future__ import annotations


def sentence(text: str) -> str:
    """The text with its first letter large."""
    return text[0].upper() + text[1:]
