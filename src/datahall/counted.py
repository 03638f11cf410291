"""Things in sentences: so many of them, or one."""

from __future__ import annotations

import re


def counted(number: int, noun: str) -> str:
    """A number of things.

    >>> counted(1, "switch"), counted(1200, "cable"), counted(2, "switch")
    ('1 switch', '1,200 cables', '2 switches')
    """
    ending = "" if number == 1 else "es" if noun.endswith(("s", "ch", "x")) else "s"
    return f"{number:,} {noun}{ending}"


NEARLY_ONE = 0.95  # what is shown as a fraction is less


def counted_mean(mean: float, noun: str) -> str:
    """So many in the mean; where that is less than one, as a fraction.

    >>> counted_mean(418.6, "interruption"), counted_mean(1.2, "interruption"), counted_mean(0.124, "interruption")
    ('419 interruptions', '1 interruption', '0.12 interruptions')
    """
    return f"{mean:.2g} {noun}s" if 0.0 < mean < NEARLY_ONE else counted(round(mean), noun)


def is_several(name: str) -> bool:
    """Whether a fabric's name stands for several things, which take a verb in the plural.

    >>> is_several("8 domains of 8 under a 1-tier fat tree"), is_several("1 domain of 8"), is_several("2-tier fat tree")
    (True, False, False)
    """
    return re.match(r"(?!1 )[\d,]+ ", name) is not None


def with_article(name: str) -> str:
    """A fabric or a collective as it stands in a sentence.

    >>> with_article("barrier"), with_article("all-reduce")
    ('a barrier', 'an all-reduce')
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
