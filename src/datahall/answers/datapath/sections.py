"""Words of what a plan says of data: the text that a run reads, the weights that a replica loads."""

from __future__ import annotations

from typing import TYPE_CHECKING

from datahall.answer import Cell, Quantity
from datahall.answers.section import Row, Words
from datahall.units import fmt

if TYPE_CHECKING:
    from datahall.datapath.sections.text import TextNeed
    from datahall.datapath.sections.weights import WeightsNeed


def _text(text: TextNeed) -> tuple[Row, ...]:
    rate = fmt(text.read.value, "bytes_per_s", 3)
    return (("data", Quantity(text.dataset.value, "bytes"), f"read at {rate}"),)


def _text_results(text: TextNeed) -> dict[str, Cell]:
    return {"dataset_bytes": text.dataset.value, "read_bytes_per_s": text.read.value}


def _weights(weights: WeightsNeed) -> tuple[Row, ...]:
    where = "the drives of its hosts" if weights.on_drives else "storage that all chips share"
    rate = fmt(weights.chip_bytes_per_s, "bytes_per_s", 3)
    which = f"of a replica, read from {where} in {fmt(weights.load_s, 's', 3)}, {rate} a chip"
    return (("weights", Quantity(weights.replica_bytes, "bytes"), which),)


def _weights_results(weights: WeightsNeed) -> dict[str, Cell]:
    return {"weights_bytes": weights.replica_bytes, "load_s": weights.load_s}


TEXT = Words(_text, _text_results)
WEIGHTS = Words(_weights, _weights_results)
