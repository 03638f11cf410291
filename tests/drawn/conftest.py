"""Shelves for machines that are drawn, in a folder that goes away."""

from itertools import count
from pathlib import Path

import pytest
from tests.drawn.machines import Machine, Shelf, shelf

import datahall as dh


@pytest.fixture
def on_shelf(tmp_path: Path) -> Shelf:
    number = count()

    def put(machine: Machine) -> dh.Catalog:
        return shelf(machine, tmp_path / str(next(number)))

    return put
