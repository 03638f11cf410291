"""Measured training runs: what the training room is judged on, in time and in memory.

A row states hardware, model, layout and a step time, a token rate or a FLOP rate; FLOPs are converted only by the
convention the row or its source states.  What a row leaves out is taken from its source's documents and the
framework it used, and a row that leaves out more than that is counted with the reason.
"""

from __future__ import annotations

from datahall.validation.measurement import Format
from datahall.validation.training.adapters import FORMAT as ADAPTERS
from datahall.validation.training.measured import measured
from datahall.validation.training.rows import Run, predict, predict_rows, understood
from datahall.validation.training.single_chip import FORMAT as SINGLE_CHIP
from datahall.validation.training.sources import SOURCES, Source

FORMATS = (
    Format(
        "training",
        frozenset(
            {
                "source",
                "hardware",
                "n_gpus",
                "model_name",
                "seq_len",
                "tp",
                "pp",
                "iter_time_s",
                "tokens_per_s",
            }
        ),
        predict_rows,
    ),
    SINGLE_CHIP,
    ADAPTERS,
)

__all__ = ["FORMATS", "SOURCES", "Run", "Source", "measured", "predict", "predict_rows", "understood"]
