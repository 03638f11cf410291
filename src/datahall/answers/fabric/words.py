"""Names of fabrics in sentences."""

from __future__ import annotations

import re


def with_article(name: str) -> str:
    """A fabric as it stands in a sentence.

    >>> with_article("2-tier fat tree"), with_article("8-ary fat tree"), with_article("dragonfly of 9 groups")
    ('a 2-tier fat tree', 'an 8-ary fat tree', 'a dragonfly of 9 groups')
    >>> with_article("16 domains of 72 under a 2-tier fat tree"), with_article("Meta 24k RoCE")
    ('16 domains of 72 under a 2-tier fat tree', 'Meta 24k RoCE')
    """
    one = re.match(r"\d+(-tier|-ary|x\d)|[a-z]", name)
    if one is None:
        return name
    vowel = re.match(r"8|1[18](?!\d)|[aeiou]", name) is not None
    return f"{'an' if vowel else 'a'} {name}"


def sentence(text: str) -> str:
    """The text with its first letter large."""
    return text[0].upper() + text[1:]
