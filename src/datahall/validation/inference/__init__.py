"""Measured serving runs, replayed: what the inference room is judged on.

Three formats: published benchmark rows (engine, machine, lengths, load), points of the ML.ENERGY benchmark, and logs of
single requests, which belong to others and are read only where a file is given.
"""

from datahall.validation.inference import repeats
from datahall.validation.inference.predict import predict_energy, predict_rows
from datahall.validation.inference.request_log import predict_log
from datahall.validation.measurement import Format

FORMATS = (
    Format(
        "serving",
        frozenset(
            {
                "source",
                "hardware",
                "model",
                "engine",
                "workload",
                "ttft_ms",
                "tpot_ms",
                "throughput_tok_s_total",
            }
        ),
        predict_rows,
    ),
    Format(
        "ML.ENERGY points",
        frozenset(
            {
                "system",
                "accelerator",
                "n_accelerators",
                "batch_or_concurrency",
                "output_tok_s",
                "median_itl_ms",
            }
        ),
        predict_energy,
    ),
    Format(
        "requests",
        frozenset({"input_toks", "output_toks", "queued_s", "first_token_s", "last_token_s", "max_num_seqs"}),
        predict_log,
    ),
)

NOISE = repeats.repeats

__all__ = ["FORMATS", "NOISE"]
