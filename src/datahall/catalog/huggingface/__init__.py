"""Read the `config.json` that comes with a model's weights on Hugging Face.

The architecture is chosen by `model_type`.  What a config leaves out takes the value that the `transformers`
library documents for that family; sizes that no real config leaves out must be there.  What this project does
not model is refused with the reason, never guessed.
"""

from __future__ import annotations

from pathlib import Path

from datahall.catalog import json_document
from datahall.catalog.entries.model import Model
from datahall.catalog.huggingface.config import Config
from datahall.catalog.huggingface.dense import DENSE
from datahall.catalog.huggingface.sparse import SPARSE
from datahall.errors import DocumentError, Problem, UnknownNameError

FAMILIES = {**DENSE, **SPARSE}


def from_config(path: Path | str) -> Model:
    """Return the model that a `config.json` describes; a `DocumentError` lists all the problems in it."""
    path = Path(path)
    document = json_document.read(path)
    problems: list[Problem] = []
    config = Config(document, problems)
    model_type = config.text("model_type")
    if problems:
        raise DocumentError(str(path), problems)
    if model_type not in FAMILIES:
        raise UnknownNameError(
            "model_type",
            model_type,
            FAMILIES,
            where=document.where("model_type"),
            hint=f"those that can be read: {', '.join(sorted(FAMILIES))}",
        )
    values = FAMILIES[model_type](config.inner("text_config"))
    if problems:
        raise DocumentError(str(path), problems)
    name = path.parent.name if path.name == "config.json" else path.stem
    identity = {"name": name or path.stem, "title": name or path.stem, "family": model_type, "year": 0}
    return Model(**identity, **values)  # type: ignore[arg-type]
