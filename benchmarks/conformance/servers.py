"""A gateway before a virtual upstream, and a model server, as `datahall serve` runs them."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

MODEL = "llama"
SERVED = "qwen3-0.6b"
GATEWAY = """\
[server]
listen = "127.0.0.1:0"
state = "{state}"
[upstream.virtual]
url = "{url}/v1"
[model.{model}]
upstreams = [{{ upstream = "virtual", model = "{served}" }}]
price = {{ input = 1, output = 2 }}
[model.other]
upstreams = [{{ upstream = "virtual", model = "{served}" }}]
"""
SUMMING = """\
def predict(rows):
    return rows.sum(axis=1)


predict.num_features = 3
"""


class World(NamedTuple):
    """What runs, and who may ask it."""

    url: str
    key: str
    key_of_other: str  # may not ask for MODEL
    key_of_few: str  # may ask once a minute
    model_server: str


@contextmanager
def world(datahall: str, folder: Path) -> Iterator[World]:
    """Start it all on free ports, and end it."""
    state = folder / "state"
    (folder / "summing.py").write_text(SUMMING)
    virtual = ["--virtual", SERVED, "--on", "1xh100", "--listen", "127.0.0.1:0"]
    with (
        _serving([datahall, "serve", *virtual]) as (upstream, _),
        _serving([datahall, "serve", "--model", str(folder / "summing.py"), "--listen", "127.0.0.1:0"]) as (
            model_server,
            _,
        ),
    ):
        file = folder / "gateway.toml"
        file.write_text(GATEWAY.format(state=state, url=upstream, model=MODEL, served=SERVED))
        with _serving([datahall, "serve", str(file)]) as (url, said):
            key = re.search(r"key  (\S+)", said)
            assert key, said
            yield World(
                url,
                key[1],
                _key(datahall, state, "--name", "other", "--models", "other"),
                _key(datahall, state, "--name", "few", "--rpm", "1"),
                model_server,
            )


def _key(datahall: str, state: Path, *words: str) -> str:
    command = [datahall, "gateway", "keys", "create", *words, "--state", str(state), "--json"]
    said = subprocess.run(command, capture_output=True, check=True, text=True).stdout
    key: str = json.loads(said)["results"]["key"]
    return key


@contextmanager
def _serving(command: list[str]) -> Iterator[tuple[str, str]]:
    """Its URL, and all that it said when it began."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ})
    assert process.stdout is not None
    try:
        said = ""
        while "\ncurl " not in said:
            line = process.stdout.readline()
            if not line:
                raise SystemExit(f"{' '.join(command)} ended with {process.wait()}")
            said += line
        url = re.search(r"http://127\.0\.0\.1:\d+", said)
        assert url, said
        yield url[0], said
    finally:
        process.terminate()
        try:
            process.wait(40)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
