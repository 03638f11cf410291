"""What a row leaves out and its source states elsewhere: in the row's own words, in a document, or by arithmetic.

`stated.toml` beside the measurements holds what documents state, each with where it was read.
"""

from __future__ import annotations

import re
from functools import cache
from importlib import resources

import msgspec

from datahall.validation.measurement import Row
from datahall.validation.training.sources import Source


class Statement(msgspec.Struct, frozen=True):
    """Cells of the rows whose columns match the patterns."""

    when: dict[str, str]
    cells: dict[str, str | int]
    corrects: bool = False  # also cells that the row states otherwise


class Document(msgspec.Struct, frozen=True):
    """A file or page of a source, and what it states of its rows."""

    source: str  # words in the source's name
    read_in: str
    rows: tuple[Statement, ...]


class Documents(msgspec.Struct, frozen=True):
    """All of `stated.toml`."""

    document: tuple[Document, ...]


@cache
def documents() -> tuple[Document, ...]:
    """What the sources' documents state."""
    text = resources.files("datahall.validation").joinpath("data/training/stated.toml").read_text("utf-8")
    return msgspec.toml.decode(text, type=Documents).document


def completed(row: Row, source: Source) -> Row:
    """The row with what follows from its words, its source's documents and its own figures."""
    for step in (_from_notes, _from_config_name, _from_documents):
        row = step(row)
    row = _filled(row, source.defaults)
    return _by_arithmetic(row)


def _filled(row: Row, cells: dict[str, str], *, corrects: bool = False) -> Row:
    known = {name: value for name, value in cells.items() if value and (corrects or not row.text(name))}
    return Row(row.where, row.cells | known) if known else row


def _from_documents(row: Row) -> Row:
    for document in documents():
        if document.source not in row.text("source"):
            continue
        for one in document.rows:
            if all(re.search(pattern, row.text(column)) for column, pattern in one.when.items()):
                cells = {name: str(value) for name, value in one.cells.items()}
                row = _filled(row, cells, corrects=one.corrects)
    return row


WORDS = (  # column, pattern in the notes
    ("tokens_per_s_per_chip", r"~?([\d,.]+) tokens/s/(?:GPU|device|chip)"),
    ("local_batch", r"local batch (\d+)"),
    ("tokens_per_step", r"(\d+) tokens per step"),
    ("num_accumulated", r"grad-accum (\d+)"),
    ("num_micro_batches", r"(\d+) micro-batches"),
    ("model_parallel", r"model-parallel size (?:\(TP\*PP\)=)?(\d+)"),
)


def _from_notes(row: Row) -> Row:
    notes = row.text("notes")
    found = {column: match[1].replace(",", "") for column, text in WORDS if (match := re.search(text, notes))}
    return _filled(row, found)


CONFIG = re.compile(r"_(\d+)x(\d+)x\d+xtp(\d+)pp(\d+)cp(\d+)")


def _from_config_name(row: Row) -> Row:
    """MLPerf's NeMo submissions name a configuration file by nodes, chips and layout: "_8x8x1xtp4pp1cp2"."""
    found = CONFIG.search(row.text("url_or_repo_path"))
    if found is None or not row.text("n_gpus"):
        return row
    nodes, chips, tp, pp, cp = map(int, found.groups())
    if nodes * chips != int(row.number("n_gpus")):
        return row  # the configuration of another size of the same submission
    return _filled(row, {"tp": str(tp), "pp": str(pp), "cp": str(cp)})


def _number(row: Row, column: str) -> float:
    return row.positive(column) if row.text(column) else 0.0


def _by_arithmetic(row: Row) -> Row:
    """Figures that follow from others of the same row."""
    for step in (_sequence_length, _replicas, _batch):
        row = step(row)
    return row


def _sequence_length(row: Row) -> Row:
    """tokens/s · s / sequences, where that is a whole number of 1,024 tokens to within what rounding leaves."""
    rate, step_s, batch = (
        _number(row, name) for name in ("tokens_per_s", "iter_time_s", "global_batch_seqs")
    )
    if row.text("seq_len") or not (rate and step_s and batch):
        return row
    tokens = rate * step_s / batch
    length = round(tokens / 1024) * 1024
    near = length > 0 and abs(tokens / length - 1) < 0.01
    return _filled(row, {"seq_len": str(length)}) if near else row


def _replicas(row: Row) -> Row:
    """A batch of one sequence per chip and accumulation step leaves no chip for tensor or pipeline parallelism."""
    chips, batch = _number(row, "n_gpus"), _number(row, "global_batch_seqs")
    accumulated = _number(row, "num_accumulated")
    if row.text("tp") or not (chips and batch and accumulated) or batch / accumulated < chips:
        return row
    return _filled(row, {"tp": "1", "pp": "1", "cp": "1", "dp": str(int(chips))})


def _batch(row: Row) -> Row:
    """Micro-batch and global batch from one another and from how often gradients are accumulated."""
    chips = _number(row, "n_gpus")
    group = 1.0
    for column in ("tp", "pp", "cp"):
        group *= _number(row, column) or 1.0
    if not chips or not row.text("tp"):
        return row
    ranks = max(1.0, chips // group)
    if local := _number(row, "local_batch"):
        stages = _number(row, "pp") or 1.0  # a pipelined rank cuts its batch into micro-batches of one
        row = _filled(row, {"global_batch_seqs": str(int(local * ranks))})
        row = _filled(row, {"micro_batch": "1" if stages > 1 else str(int(local))})
    batch, accumulated = _number(row, "global_batch_seqs"), _number(row, "num_accumulated")
    if batch and accumulated and batch % (ranks * accumulated) == 0:
        row = _filled(row, {"micro_batch": str(int(batch / (ranks * accumulated)))})
    elif batch and accumulated:
        row = _filled(row, {"micro_batch": "1"})  # fewer sequences than chips: no rank has more than one
    if count := _number(row, "num_micro_batches"):
        row = _filled(row, {"micro_batch": "1", "global_batch_seqs": str(int(count * ranks))})
    return row
