"""What the inputs alone decide is refused before kernels, tables or compiled loops are loaded."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from datahall.answers.ask import ask
from datahall.catalog import Catalog
from datahall.errors import DatahallError
from datahall.inference.engine.engine import engines
from datahall.inference.fleet import service
from datahall.scenario.kinds import Raw
from datahall.scenario.sections.fleet import Replicas, Router
from datahall.scenario.words import ENGINES

SOURCE = Path(__file__).parents[3] / "src"
RUN: dict[str, Raw] = {"model": "llama-3.1-8b", "rate": 1}
REFUSED: tuple[tuple[str, dict[str, Raw], str], ...] = (
    ("simulate serve", {"model": "llama-3.1-8b"}, "rate"),
    ("plan serve", {"model": "llama-3.1-8b"}, "rate"),
    ("simulate serve", RUN | {"autoscale": "5..2"}, "autoscale"),
    ("simulate serve", RUN | {"autoscale": "often"}, "autoscale"),
    ("simulate serve", RUN | {"engine": "foo"}, "engine"),
    ("show fit", {"model": "llama-3.1-8b", "engine": "foo"}, "engine"),
    ("show techniques", RUN | {"draft": "foo"}, "draft"),
    ("simulate serve", RUN | {"draft": "mtp"}, "draft"),
    ("simulate serve", RUN | {"pp": 99}, "pp"),
    ("simulate serve", RUN | {"routing_skew": 1.0}, "routing_skew"),
    ("simulate serve", RUN | {"ep": 2}, "ep"),
    ("simulate serve", RUN | {"handoff": "1 GB/s"}, "handoff"),
    ("simulate serve", RUN | {"adapters": 2, "resident_adapters": 5}, "resident_adapters"),
    ("simulate serve", RUN | {"warmup": "5 s", "until": "2 s"}, "warmup"),
    ("simulate serve", RUN | {"cache": {"questions": 5}}, "cache"),
    ("simulate serve", RUN | {"rate": "inf", "duration": "5 s"}, "duration"),
    ("simulate serve", RUN | {"wait": "5 ms"}, "wait"),
    ("simulate serve", RUN | {"percentile": 1}, "percentile"),
    *(
        (verb, RUN | said, field)
        for verb in ("plan serve", "show techniques")
        for said, field in (
            ({"engine": "static"}, "engine"),
            ({"engine": "dynamic"}, "engine"),
            ({"rate": "inf"}, "rate"),
            ({"isl": 0}, "isl"),
            ({"isl": 1e9}, "isl"),
            ({"osl": "shape=uniform,low=5,high=2"}, "osl"),
        )
    ),
)
HEAVY = ("numba", "numpy", "datahall.silicon", "datahall.inference.step", "datahall.planner.serving.plan")
ASKED = """
import json, sys
from datahall.answers.ask import ask
from datahall.errors import DatahallError
for verb, said, field in json.load(sys.stdin):
    try:
        ask(verb, said)
    except DatahallError as error:
        assert error.field == field, (verb, said, error.field)
    else:
        raise AssertionError((verb, said))
    loaded = [name for name in {heavy!r} if name in sys.modules]
    assert not loaded, (verb, said, loaded)
"""


def test_nothing_heavy_is_loaded_to_refuse_it() -> None:
    import msgspec

    done = subprocess.run(
        [sys.executable, "-c", ASKED.replace("{heavy!r}", repr(HEAVY))],
        input=msgspec.json.encode(REFUSED),
        capture_output=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(SOURCE)},
    )
    assert done.returncode == 0, done.stderr.decode()


@pytest.mark.parametrize(
    "said",
    [
        {"replicas": 4, "autoscale": "1..2"},
        {"failure": [{"replicas": 7}]},
        {"in_region": "eu"},
        {"users": 3, "rate": None, "cache": {"process": 5}},
    ],
)
def test_no_table_of_steps_is_made_for_a_fleet_that_cannot_be(
    monkeypatch: pytest.MonkeyPatch, said: dict[str, Raw]
) -> None:
    def made(*_: object) -> None:
        raise AssertionError("a table was made")

    monkeypatch.setattr(service, "price_steps", made)
    with pytest.raises(DatahallError):
        ask("simulate serve", RUN | said, catalog=Catalog(user=False))


def test_the_names_of_engines_are_those_that_are_known() -> None:
    assert set(ENGINES) == set(engines())


@pytest.mark.parametrize(
    ("text", "asked"),
    [("1..16", Replicas(1, 16)), ("0..8:24", Replicas(0, 8, 24.0)), ("2..2:0.5", Replicas(2, 2, 0.5))],
)
def test_a_range_of_replicas_is_read_and_written_back(text: str, asked: Replicas) -> None:
    from datahall.answers.ask import form_of
    from datahall.scenario.read import read_names

    found = read_names(form_of("simulate serve"), RUN | {"autoscale": text}, Catalog(user=False))
    assert found.one(Router).autoscale == asked
    assert found.said["router"][0]["autoscale"] == text
