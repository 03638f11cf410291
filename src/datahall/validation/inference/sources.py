"""Which reader understands the rows of which source, and why some sources cannot be replayed."""

from __future__ import annotations

from collections.abc import Callable

from datahall.validation.inference.public_tables import read_mlperf, read_nim, read_tensorrt
from datahall.validation.inference.run import Run
from datahall.validation.inference.silicon_sample import read_silicon
from datahall.validation.measurement import Row, RowError

READERS: tuple[tuple[str, Callable[[Row], Run]], ...] = (
    ("AIConfigurator", read_silicon),
    ("TensorRT-LLM perf docs", read_tensorrt),
    ("MLPerf", read_mlperf),
    ("NVIDIA NIM", read_nim),
)
REFUSED = (
    ("InferenceX experimental", "the source does not name its hardware"),
    ("SGLang cookbook", "the source states neither how many chips nor how they are split"),
    ("splitwise", "a static batch of an engine of 2023"),
    ("LLMServingSim", "scored request by request: give the file of requests itself as data"),
    ("DeepSeek", "a day of production: its traffic is not published"),
    ("InferSim", "the source states neither batch nor lengths"),
    ("LMSYS", "the source does not state the batch"),
)


def read_run(row: Row) -> Run:
    """Understand a row; raises `RowError` with what it leaves out."""
    source = row.text("source")
    for words, read in READERS:
        if source.startswith(words):
            return read(row)
    reason = next((reason for words, reason in REFUSED if source.startswith(words)), "")
    raise RowError(reason or "we do not know how this source drove its engine")
