"""The chain of a stage's memory says who cut the pipeline."""

from __future__ import annotations

import pytest

import datahall as dh

ASKED = {"model": "llama-3.1-8b", "chips": 16, "tp": 2, "pp": 2, "global_batch": 64}


@pytest.mark.parametrize(
    ("more", "how"), [({}, "as the pipeline is cut"), ({"split": [15, 17]}, "cut by hand")]
)
def test_a_stage_says_who_cut_it(more: dict[str, list[int]], how: str) -> None:
    figure = dh.show_memory(**ASKED, **more).figure
    assert figure is not None
    layers = [one for _, one in figure.walk() if one.name == "layers of the stage"]
    assert layers
    assert {one.note for one in layers} == {how}
