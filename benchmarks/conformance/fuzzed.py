"""Schemathesis on what the servers say of themselves."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from servers import MODEL, World

MOST_EXAMPLES = int(os.environ.get("CONFORMANCE_EXAMPLES", "25"))
LONGEST_S = 900
CHECKS = "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance"


def of_gateway(world: World) -> str:
    return _fuzzed(world.url, MODEL, ("-H", f"Authorization: Bearer {world.key}"))


def of_model_server(world: World) -> str:
    return _fuzzed(world.model_server, "summing")


def _fuzzed(url: str, model: str, words: Sequence[str] = ()) -> str:
    """How many cases there were; an error where one failed."""
    program = Path(sys.executable).with_name("schemathesis")
    command = [
        str(program), "run", f"{url}/openapi.json", "--max-examples", str(MOST_EXAMPLES), "-c", CHECKS, "--no-color",
        "--generation-deterministic", "--suppress-health-check", "all", *words,
    ]  # fmt: skip
    here = str(Path(__file__).parent)
    env = {**os.environ, "PYTHONPATH": here, "SCHEMATHESIS_HOOKS": "hooks", "SERVED_MODEL": model}
    with tempfile.TemporaryDirectory() as folder:  # it writes where it stands
        done = subprocess.run(
            command, env=env, cwd=folder, capture_output=True, text=True, timeout=LONGEST_S, check=False
        )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]
    cases = re.search(r"([\d,]+) generated", done.stdout)
    return f"{cases[1]} cases" if cases else ""


CHECKS_OF = {
    "the gateway's description": of_gateway,
    "the model server's, with the Open Inference Protocol": of_model_server,
}
