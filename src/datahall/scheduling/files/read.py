"""A file of jobs, whosever it is."""

from __future__ import annotations

from datahall.errors import DocumentError, Problem
from datahall.scheduling.files.queue_file import QueueFile
from datahall.scheduling.files.sacct import is_sacct, sacct_queue, sacct_table
from datahall.scheduling.files.table import Table, csv_table, text_of
from datahall.scheduling.files.traces import known_columns, trace_queue


def read_queue(path: str) -> QueueFile:
    """The jobs of a sacct dump or a CSV trace, in the order that they were submitted."""
    return queue_of(read_table(path))


def queue_of(table: Table) -> QueueFile:
    """The jobs of a table, by its columns."""
    return sacct_queue(table) if table.has("JobID") else trace_queue(table)


def read_table(path: str) -> Table:
    """A sacct dump or a CSV trace as columns of text."""
    text = text_of(path)
    first = next(line for line in text.splitlines() if line.strip())
    if is_sacct(first):
        return sacct_table(path, text)
    if "|" in first:
        hint = "let sacct write the names of columns first"
        raise DocumentError(path, [Problem(f"{path}:1", "rows without the names of their columns", hint)])
    if "," not in first:
        raise DocumentError(path, [Problem(f"{path}:1", "neither sacct nor CSV", known_columns())])
    return csv_table(path, text)
