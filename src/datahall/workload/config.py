"""A model from its `config.json`, called by its family and size where the file gives no name."""

from __future__ import annotations

from pathlib import Path

import msgspec

from datahall.catalog.entries.model import Model
from datahall.catalog.huggingface import from_config
from datahall.units import fmt
from datahall.workload.parameters import count_parameters


def read_config(path: Path | str) -> Model:
    """The model that a file describes, e.g. "llama 8.03B"; files with the same bytes give the same model."""
    model = from_config(path)
    if model.name != model.family:
        return model
    name = f"{model.family} {fmt(count_parameters(model).total, 'parameters', 3).replace(' ', '')}"
    return msgspec.structs.replace(model, name=name, title=name)
