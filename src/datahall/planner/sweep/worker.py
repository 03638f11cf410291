"""A process that answers points: one a line of standard input, each with one line on standard output.

It ends with its standard input, so also when whoever started it is killed.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from importlib import import_module

Answerer = Callable[[bytes], bytes]  # a point in, what was found of it out, each in a line of JSON


def answerer(place: str, context: bytes) -> Answerer:
    """The function that answers points, made by the one at a place, module:name under `datahall`."""
    module, _, name = place.partition(":")
    made: Answerer = getattr(import_module(f"datahall.{module}"), name)(context)
    return made


def main() -> None:
    """Answer until nobody asks any more."""
    asked, told = sys.stdin.buffer, os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # what a library prints is no answer
    place, context = asked.readline().decode().strip(), asked.readline()
    answer = answerer(place, context)
    for line in asked:
        told.write(answer(line) + b"\n")
        told.flush()


if __name__ == "__main__":
    main()
