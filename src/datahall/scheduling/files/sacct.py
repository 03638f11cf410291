"""Slurm's accounting: `sacct --parsable2` dumps, with all that real ones have in them.

Rows of steps (56.batch, 56.0) say again what the row of their job says, and are left out.  A name with a line break
makes one row of several lines.  A job that was requeued has a row for each time that it ran.  Times that have not come
are "Unknown".  GPUs are `gres/gpu=8` of AllocTRES, or `1001=8` where resources are numbered.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import numpy as np

from datahall.counted import counted
from datahall.errors import DocumentError, Problem
from datahall.scheduling.files.queue_file import QueueFile
from datahall.scheduling.files.table import BROKEN, Sieve, Table, broken, numbered, numbers
from datahall.scheduling.files.times import points_s, span_s
from datahall.scheduling.jobs import Bools, jobs_of
from datahall.scheduling.loop.state import Floats

TITLE = "Slurm accounting (sacct)"
GPUS = re.compile(r"(?:^|,)(?:gres/gpu|1001)=(\d+)")
TYPED_GPUS = re.compile(r"(?:^|,)gres/gpu:[^=,]+=(\d+)")
OLD_GPUS = re.compile(r"gpu(?::[^:,=()]+)?[:=](\d+)")
HEAD = re.compile(r"\w+")
NEEDED = ("JobID", "Start", "State")
MINUTE_S = 60.0


def is_sacct(first: str) -> bool:
    """Whether the first line of a file is the head of a dump."""
    return "JobID" in first and delimiter_of(first) != ""


def delimiter_of(head: str) -> str:
    """What stands between the names of columns, the same everywhere; nothing where it is not.

    >>> delimiter_of("JobID|State|Start"), delimiter_of("Account|#JobID|#End"), delimiter_of("a,b")
    ('|', '|#', '')
    """
    between = {one for one in HEAD.split(head.strip()) if one}
    found = between.pop() if len(between) == 1 else ""
    return found if found != "," else ""


def sacct_queue(table: Table) -> QueueFile:
    """The jobs of a dump's table."""
    path = table.path
    missing = [name for name in NEEDED if not table.has(name)]
    if not table.has("AllocTRES", "ReqTRES", "AllocGRES", "ReqGRES"):
        missing.append("AllocTRES")
    if missing:
        hint = "what helps: JobID,State,Submit,Start,End,NNodes,AllocTRES,Timelimit,User,Account,Priority"
        raise DocumentError(path, [Problem(f"{path}:1", f"no column {', '.join(missing)}", hint)])
    return _queue(table)


def sacct_table(path: str, text: str) -> Table:
    """A dump as columns of text, one row for each record, whatever lines it takes."""
    lines = text.splitlines()
    first = next(number for number, line in enumerate(lines) if line.strip())
    mark = delimiter_of(lines[first])
    head = lines[first].strip().split(mark)
    if head[-1] == "":  # sacct --parsable ends every line with one
        head.pop()
    rows, numbers_, wrong, ends_within = _rows(lines, first + 1, mark, len(head))
    columns = dict(zip(head, map(list, zip(*rows, strict=True)), strict=True)) if rows else {}
    left_out = broken(path, wrong, cut_off=ends_within)
    return Table(path, columns or {name: [] for name in head}, numbers_, left_out)


def _rows(
    lines: Sequence[str], first: int, mark: str, num: int
) -> tuple[list[list[str]], list[int], list[int], bool]:
    """Rows of so many values, the line of each, lines that belong to none, and whether it ends within a row.

    What has too few values goes on in the next line, unless that is a whole row.
    """
    rows, numbers_, wrong = [], [], []
    held, since = "", 0
    for number, line in enumerate(lines[first:], first + 1):
        parts = line.split(mark)
        if len(parts) == num + 1 and parts[-1] == "":
            parts.pop()
        if len(parts) != num and held:
            joined = f"{held} {line}".split(mark)
            if len(joined) == num:
                parts, number, held = joined, since, ""
            elif len(joined) > num:
                wrong.append(since)
                held = ""
        if len(parts) == num:
            if held:
                wrong.append(since)
                held = ""
            rows.append(parts)
            numbers_.append(number)
        elif len(parts) > num:
            wrong.append(number)
        elif line.strip():
            held, since = (f"{held} {line}", since) if held else (line, number)
    return rows, numbers_, [*wrong, *([since] if held else [])], bool(held)


def _queue(table: Table) -> QueueFile:
    ids = table.column("JobID")
    sieve = Sieve(table)
    sieve.drop(np.array([not one for one in ids], np.bool_), BROKEN)
    sieve.drop(np.array(["." in one for one in ids], np.bool_), "a step of a job, whose row says it already")
    start, end, submit = (points_s(table.column(name)) for name in ("Start", "End", "Submit"))
    states = np.array([one.split(" ", 1)[0].rstrip("+") for one in table.column("State")], dtype=np.str_)
    sieve.drop(np.isnan(start) | (states == "PENDING"), "never started")
    chips = _chips(table)
    sieve.drop(chips < 1, "holds no GPU")
    sieve.drop(_again(table, start, end), "the same run of the same job again")
    last_s = float(np.nanmax(np.concatenate([start, end]), initial=0.0)) if table.num else 0.0
    running = np.isnan(end) & ((states == "RUNNING") | ~table.has("End"))
    end = np.where(running, last_s, end)
    sieve.drop(np.isnan(end), "has no end")
    sieve.drop(end < start, "ends before it starts")
    sieve.drop(end == start, "ran for no time")
    no_submit = np.isnan(submit)
    submit = np.where(no_submit, start, submit)
    sieve.drop(submit > start, "starts before it is submitted")
    sieve.check_any()
    return _made(sieve, submit, start, end, chips, running & sieve.kept, no_submit & sieve.kept)


def _made(
    sieve: Sieve, submit: Floats, start: Floats, end: Floats, chips: Floats, running: Bools, unsaid: Bools
) -> QueueFile:
    table, kept = sieve.table, sieve.kept
    submit = _after_the_last(table.column("JobID"), submit, start, end, kept)
    run = end - start
    limit = _limits(table)
    users, user = numbered(
        [account or name for account, name in zip(table.column("Account"), table.column("User"), strict=True)]
    )
    nodes = np.nan_to_num(numbers(table.column("AllocNodes", "NNodes")), nan=0.0)
    jobs = jobs_of(
        submit,
        run,
        chips.astype(np.int64),
        names=tuple(table.column("JobID")),
        users=users,
        user=user,
        limit_s=np.where(np.isfinite(limit), np.maximum(limit, run), run),
        start_s=start,
        nodes=nodes.astype(np.int64),
        priority=np.nan_to_num(numbers(table.column("Priority"))),
    )
    return QueueFile(
        path=table.path,
        title=TITLE,
        jobs=jobs.taken(kept).from_the_first,
        left_out=tuple(sieve.left_out),
        notes=tuple(_notes(table, limit[kept], int(running.sum()), int(unsaid.sum()))),
    )


def _notes(table: Table, limit: Floats, num_running: int, num_unsaid: int) -> Iterator[str]:
    if num_running:
        run = "still runs: it is" if num_running == 1 else "still run: they are"
        yield f"{counted(num_running, 'job')} {run} taken to end with the last time in {table.path}"
    if num_unsaid:
        say = "does not say when it was" if num_unsaid == 1 else "do not say when they were"
        yield f"{counted(num_unsaid, 'job')} {say} submitted: taken to have waited for nothing"
    unlimited = int((~np.isfinite(limit)).sum())
    if unlimited:
        have = (
            "has no time limit: backfill is told how long it"
            if unlimited == 1
            else "have no time limit: backfill is told how long they"
        )
        yield f"{counted(unlimited, 'job')} {have} really ran"


def _again(table: Table, start: Floats, end: Floats) -> Bools:
    """Rows that say what an earlier one does."""
    seen: set[tuple[str, float, float]] = set()
    found = np.zeros(table.num, np.bool_)
    for row, key in enumerate(
        zip(table.column("JobID"), start.tolist(), np.nan_to_num(end).tolist(), strict=True)
    ):
        found[row] = key in seen
        seen.add(key)
    return found


def _after_the_last(ids: list[str], submit: Floats, start: Floats, end: Floats, kept: Bools) -> Floats:
    """When each run could begin: of a job that was requeued, when the run before it ended."""
    found, ended = submit.copy(), dict[str, float]()
    for row in np.flatnonzero(kept)[np.argsort(start[kept], kind="stable")].tolist():
        before = ended.get(ids[row], -np.inf)
        found[row] = min(max(found[row], before), start[row])
        ended[ids[row]] = max(before, end[row])
    return found


def _limits(table: Table) -> Floats:
    """Time limits [s]; NaN or inf where there is none."""
    if table.has("TimelimitRaw"):
        return numbers(table.column("TimelimitRaw")) * MINUTE_S
    texts = table.column("Timelimit")
    known = {text: span_s(text) for text in set(texts)}
    return np.array([known[text] for text in texts])


def _chips(table: Table) -> Floats:
    """GPUs that each row was given, or asked for where it was given nothing that is said."""
    columns = [table.column(name) for name in ("AllocTRES", "ReqTRES")]
    old, nodes = table.column("AllocGRES", "ReqGRES"), numbers(table.column("AllocNodes", "NNodes"))
    known: dict[str, int] = {"": 0}
    found = np.zeros(table.num)
    for row in range(table.num):
        for texts in columns:
            if texts[row] not in known:
                known[texts[row]] = gpus(texts[row])
            found[row] = found[row] or known[texts[row]]
        per_node = OLD_GPUS.search(old[row]) if not found[row] and old[row] else None
        if per_node:
            found[row] = int(per_node[1]) * (nodes[row] if nodes[row] > 0 else 1)
    return found


def gpus(resources: str) -> int:
    """GPUs of a list of trackable resources; kinds of them are counted where there is no sum.

    >>> gpus("billing=97,cpu=1,gres/gpu=8,mem=64G,node=1"), gpus("cpu=8,gres/gpu:h100=4"), gpus("1=20,1001=8,4=1")
    (8, 4, 8)
    """
    found = GPUS.search(resources)
    return int(found[1]) if found else sum(int(one) for one in TYPED_GPUS.findall(resources))
