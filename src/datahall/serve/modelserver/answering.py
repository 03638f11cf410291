"""What handlers of this room share: routes, and the header that says when to come again."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import ceil
from typing import TypeAlias

from datahall.serve.http import Exchange

Answering: TypeAlias = Callable[[Exchange], None]
Routes: TypeAlias = Mapping[str, Mapping[str, Answering]]  # path, then method


def retry_after(wait_s: float) -> tuple[tuple[str, str], ...]:
    """Whole seconds, as the header has them, and never at once.

    >>> retry_after(0.2)
    (('Retry-After', '1'),)
    """
    return (("Retry-After", str(max(1, ceil(wait_s)))),) if wait_s else ()
