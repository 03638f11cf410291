"""Clients of others against `datahall serve`, unchanged: what passes, in a table; `make conformance` runs it."""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import anthropic_client
import fuzzed
import load
import openai_client
from servers import World, world

SUITES: Mapping[str, Mapping[str, Callable[[World], str | None]]] = {
    "openai": openai_client.CHECKS,
    "anthropic": anthropic_client.CHECKS,
    "aiperf": load.CHECKS,
    "schemathesis": fuzzed.CHECKS_OF,
}


def main(datahall: str, wanted: list[str]) -> int:
    """Run what is wanted, or all of it; 1 where anything failed."""
    num_failed = num_passed = 0
    with tempfile.TemporaryDirectory() as folder, world(datahall, Path(folder)) as one:
        for suite, checks in SUITES.items():
            if wanted and suite not in wanted:
                continue
            for name, check in checks.items():
                began_s = time.monotonic()
                try:
                    said, word = check(one) or "", "passed"
                    num_passed += 1
                except Exception as error:
                    said, word = f"{type(error).__name__}: {error}", "failed"
                    num_failed += 1
                took_s = time.monotonic() - began_s
                print(f"{suite:13} {name:53} {word}  {took_s:6.1f} s  {said}".rstrip(), flush=True)
    print(f"{num_passed} passed, {num_failed} failed")
    return 1 if num_failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
