"""Numbers of things in sentences."""

from __future__ import annotations


def counted(number: int, noun: str) -> str:
    """A number of things.

    >>> counted(1, "switch"), counted(1200, "cable"), counted(2, "switch")
    ('1 switch', '1,200 cables', '2 switches')
    """
    ending = "" if number == 1 else "es" if noun.endswith(("s", "ch", "x")) else "s"
    return f"{number:,} {noun}{ending}"
