"""Read the `config.json` that comes with a model's weights on Hugging Face.

The architecture is chosen by `model_type`.  What a config leaves out takes the value that the `transformers`
library documents for that family; sizes that no real config leaves out must be there.  What this project does
not model is refused with the reason, never guessed.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from datahall.breakdown import Source
from datahall.catalog import json_document
from datahall.catalog.entries.model import Mla, Model, Moe, Recurrent
from datahall.catalog.entries.model_entry import LABELS
from datahall.catalog.fact import Fact
from datahall.catalog.huggingface.config import Config, Values
from datahall.catalog.huggingface.dense import DENSE
from datahall.catalog.huggingface.quantisation import quantisation
from datahall.catalog.huggingface.sparse import SPARSE
from datahall.errors import DocumentError, Problem, UnknownNameError

FAMILIES = {**DENSE, **SPARSE}
MTP_KEYS = ("num_nextn_predict_layers", "num_mtp_modules", "mtp_num_hidden_layers")


def from_config(path: Path | str) -> Model:
    """Return the model that a `config.json` describes; a `DocumentError` lists all the problems in it.

    It bears the name in the file, else that of its family: one file is one model, wherever it lies.
    """
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
    text = config.inner("text_config")
    values = FAMILIES[model_type](text) | {"quantisation": quantisation(text), "num_mtp_layers": _mtp(text)}
    if problems:
        raise DocumentError(str(path), problems)
    name = _name(config) or model_type
    identity = {"name": name, "title": name, "family": model_type, "year": 0}
    return Model(**identity, **values, facts=_facts(values, path))  # type: ignore[arg-type]


def _mtp(config: Config) -> int:
    """Layers of multi-token prediction, under the names that families have for them."""
    said = [config.table.get(key) for key in MTP_KEYS]
    return max(
        (number for number in said if isinstance(number, int) and not isinstance(number, bool)), default=0
    )


def _name(config: Config) -> str:
    """What the file calls the model; a folder's name is no property of the model."""
    called = config.table.get("_name_or_path")
    last = called.rstrip("/").rpartition("/")[2] if isinstance(called, str) else ""
    return "" if last in {".", ".."} else last


def _facts(values: Values, path: Path) -> dict[str, Fact]:
    """The sizes as facts of the file, under the keys that an entry of the catalogue has them by.

    The file by its own name: one file is one model, wherever it lies.
    """
    file = Source(path.name, "as read", "given")
    parts = {"": values} | {
        f"{key}.": msgspec.structs.asdict(part)
        for key, part in values.items()
        if isinstance(part, Moe | Mla | Recurrent)
    }
    return {
        f"{prefix}{key}": Fact(LABELS.get(f"{prefix}{key}", key), float(value), "count", file)
        for prefix, part in parts.items()
        for key, value in part.items()
        if type(value) is int
    }
