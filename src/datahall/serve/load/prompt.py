"""Prompts of a wanted number of tokens, for whichever tokenizer: a common word of three letters and a space is one."""

from __future__ import annotations

from random import Random

WORDS = [
    "the",
    "and",
    "for",
    "you",
    "are",
    "but",
    "not",
    "all",
    "can",
    "had",
    "her",
    "was",
    "one",
    "our",
    "out",
]


def prompt(num_tokens: int, random: Random) -> str:
    """Text of about so many tokens; of some words, no two begin alike, so that no cache of prefixes answers.

    >>> len(prompt(8, Random(1)).split())
    8
    """
    return " ".join(random.choices(WORDS, k=num_tokens))
