"""Ask every verb about every chip and a dozen models of different build: does each question end well?

    python tests/sweep.py [--chip h20] [--model gpt-oss-120b] [--verb "plan train"]

A question ends well with an answer (0), a no (1) or a clear refusal (2), and no number in it is NaN or infinite.
Whatever ends otherwise is printed with its command.  The whole sweep takes about half an hour of one core; the tests
ask a part of it (`tests/cli/test_sweep.py`).
"""

from __future__ import annotations

import argparse
import contextlib
import io
import re
import shlex
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from datahall.catalog import Catalog
from datahall.cli.main import run

# the model and chip, as each verb that takes both of them is told
QUESTIONS = {
    "plan serve": "plan serve {model} --chips {chip} --rate 4",
    "plan train": "plan train {model} --chip {chip} --chips 64 --tokens 1T",
    "simulate serve": "simulate serve {model} --chip {chip} --rate 2 --requests 200",
    "simulate train": "simulate train {model} --chip {chip} --chips 64",
    "show model": "show model {model} --chips {chip}",
    "show fit": "show fit {model} --chip {chip}",
    "show roofline": "show roofline {chip} --model {model}",
    "show memory": "show memory {model} --chip {chip} --chips 64",
    "show checkpoint": "show checkpoint {model} --chip {chip} --chips 64",
    "show power": "show power {model} --chip {chip} --chips 64",
    "simulate run": "simulate run {model} --chip {chip} --chips 64 --days 3 --runs 20",
    "show training-techniques": "show training-techniques {model} --chip {chip} --chips 64",
    "show techniques": "show techniques {model} --chip {chip} --rate 1",
    "show build-or-buy": "show build-or-buy --model {model} --chips {chip} --tokens-per-month 2B",
    "show stage": "show stage --model {model} --chips {chip} --customers 1500 --tokens-per-customer 3M",
    "compare": "compare {chip} h100-sxm --model {model}",
}
# dense, grouped and multi-query, ALiBi, sliding windows, latent attention, experts, recurrent layers, four-bit weights
MODELS = (
    "smollm2-135m", "llama-3.1-8b", "llama-3.1-405b", "falcon-7b", "bloom-176b", "gemma-3-27b", "deepseek-v3",
    "mixtral-8x7b", "gpt-oss-120b", "qwen3-next-80b-a3b", "nemotron-h-56b", "gpt-3-175b",
)  # fmt: skip
CHIPS = tuple(chip.name for chip in Catalog(user=False).chips())
NO_NUMBER = re.compile(r"(?<![\w\"])(?:-?inf|nan|NaN|-?Infinity)(?![\w\"])(?! Cache| Fabric)")


class Ending(NamedTuple):
    """How a question ended."""

    line: str
    code: int
    out: str
    err: str

    @property
    def well(self) -> bool:
        """Whether it says something, in numbers, and ends as it may."""
        said = re.sub(r'"[^"]*"', "", self.out) + self.err
        return self.code in (0, 1, 2) and bool(said) and not NO_NUMBER.search(said)


def asked(line: str) -> Ending:
    """Ask in this process, as the command line would."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = run([*shlex.split(line), "--json"])
    return Ending(line, code, out.getvalue(), err.getvalue())


def lines(
    verbs: Sequence[str] = tuple(QUESTIONS), models: Sequence[str] = MODELS, chips: Sequence[str] = CHIPS
) -> Iterator[str]:
    """Every question of these."""
    for chip in chips:
        for model in models:
            for verb in verbs:
                yield QUESTIONS[verb].format(model=model, chip=chip)


def main() -> int:
    """Ask, say what ended badly, and count."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--verb", action="append", choices=tuple(QUESTIONS))
    parser.add_argument("--model", action="append")
    parser.add_argument("--chip", action="append", choices=CHIPS)
    given = parser.parse_args()
    codes: Counter[int] = Counter()
    wrong, start, slowest = 0, time.process_time(), (0.0, "")
    for line in lines(given.verb or tuple(QUESTIONS), given.model or MODELS, given.chip or CHIPS):
        before = time.process_time()
        ending = asked(line)
        slowest = max(slowest, (time.process_time() - before, line))
        codes[ending.code] += 1
        if not ending.well:
            wrong += 1
            print(
                f"{ending.code}: datahall {line}\n    {(ending.err or ending.out).strip()[-300:]}", flush=True
            )
    spent = time.process_time() - start
    print(
        f"{codes.total():,} questions, {dict(sorted(codes.items()))}, {wrong} ended badly, {spent:.0f} CPU-s"
    )
    print(f"slowest: {slowest[0]:.1f} CPU-s, {slowest[1]}")
    return wrong > 0


if __name__ == "__main__":
    sys.exit(main())
