"""Files of plans, made once for all tests here, and read back without the code that writes them."""

from __future__ import annotations

import re
import shlex
import shutil
import stat
import subprocess
from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import pytest

from datahall.answer import Answer
from datahall.answers.ask import ask
from datahall.answers.reply import Deployable
from datahall.catalog import Catalog

# the tools themselves are gigabytes that nobody needs here: their own parsers are asked where one of them is installed
TOOLS = ("vllm", "sglang", "torchtitan", "deepspeed", "ray", "kubernetes_validate")
collect_ignore = [] if any(map(find_spec, TOOLS)) else ["test_real_parsers.py"]

SERVE, TRAIN = "plan serve", "plan train"
DENSE = {"model": "llama-3.1-70b", "users": "1000", "chips": "h100-sxm", "precision": "bf16"}
SMALL = {"model": "llama-3.1-8b", "rate": "5", "chips": "h100-sxm", "precision": "bf16"}
TRAINED = {"model": "llama-3.1-8b", "tokens": "1T", "chips": "64"}


class Made(NamedTuple):
    """An answer, and the files that can be had of it."""

    answer: Answer
    file: Callable[[str], str]


@cache
def _asked(verb: str, given: tuple[tuple[str, str], ...]) -> Made:
    reply = ask(verb, dict(given), catalog=Catalog(user=False))
    assert isinstance(reply, Deployable)
    return Made(reply.answer, cache(reply.artefact))


def asked(verb: str, given: dict[str, str]) -> Made:
    return _asked(verb, tuple(given.items()))


def called(text: str, folder: Path, programs: tuple[str, ...], **environment: str) -> list[list[str]]:
    """The words of every program that a script starts, which is run with others in their place.

    All of them are let end: that the first ends the others, as with real servers, would cut the rest off.
    """
    bin_folder = folder / "bin"
    bin_folder.mkdir(exist_ok=True)
    calls = folder / "calls"  # each in a file of its own: those that run at once write at once
    shutil.rmtree(calls, ignore_errors=True)
    calls.mkdir()
    for name in programs:
        program = bin_folder / name
        line = f'printf "%s\\0" {name} "$@" "CUDA=${{CUDA_DEVICE_MAX_CONNECTIONS:-}}" > "{calls}/$$"'
        program.write_text(f"#!/usr/bin/env bash\n{line}\n")
        program.chmod(program.stat().st_mode | stat.S_IEXEC)
    script = folder / "script.sh"
    script.write_text(text.replace("wait -n", "wait"))
    path = f"{bin_folder}:/usr/bin:/bin"
    done = subprocess.run(
        ["bash", str(script)], env={"PATH": path, **environment}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    told = sorted(calls.iterdir(), key=lambda call: call.stat().st_mtime_ns)
    return [call.read_text().strip("\0").split("\0") for call in told]


def flags(words: list[str]) -> dict[str, str]:
    """Options with their values; one that stands alone has "".  A word may be negative."""
    found: dict[str, str] = {}
    name = ""
    for word in words:
        if word.startswith("CUDA="):
            continue
        if word.startswith("--"):
            name = word
            found[name] = ""
        elif name:
            found[name] = f"{found[name]} {word}".strip()
    return found


def command_of(text: str) -> dict[str, str]:
    """The options of the long command of a script, as they are written."""
    joined = text.replace("\\\n", " ")
    line = max(joined.splitlines(), key=len)
    return flags(shlex.split(line.removesuffix("&"), comments=False))


@pytest.fixture
def syntax(tmp_path: Path) -> Callable[[str], None]:
    """A check that bash reads a script."""

    def check(text: str) -> None:
        path = tmp_path / "read.sh"
        path.write_text(text)
        done = subprocess.run(["bash", "-n", str(path)], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr

    return check


COMMENT = re.compile(r"^# made by datahall \S+: (datahall plan .*)$", re.M)
