"""The process that answers: one task at a time, until whoever started it ends it."""

from __future__ import annotations

import gc
import logging
import signal
from multiprocessing.connection import Connection

import msgspec

from datahall.answers.ask import ask
from datahall.answers.reply import Deployable, Reply, Traced, answer_of
from datahall.errors import DatahallError, OutputError, too_little_memory
from datahall.report.output import render
from datahall.studio.shown import shown_answer
from datahall.studio.task import Done, Message, Progress, Refused, Task

INFEASIBLE, UNREADABLE = 200, 422
TYPES = {
    "json": "application/json", "html": "text/html; charset=utf-8", "md": "text/markdown; charset=utf-8",
    "csv": "text/csv; charset=utf-8",
}  # fmt: skip
TRACE, TEXT = "application/octet-stream", "text/plain; charset=utf-8"


def work(pipe: Connection) -> None:
    """Answer tasks that come through a pipe until it is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # is for whoever started it
    gc.freeze()
    log = logging.getLogger("datahall")
    log.setLevel(logging.INFO)
    log.addHandler(_Telling(pipe))
    while True:
        try:
            task = msgspec.msgpack.decode(pipe.recv_bytes(), type=Task)
        except EOFError:
            return
        pipe.send_bytes(msgspec.msgpack.encode(answered(task)))


class _Telling(logging.Handler):
    """Sends how far a question is to whoever waits for its answer."""

    def __init__(self, pipe: Connection) -> None:
        super().__init__()
        self._pipe = pipe

    def emit(self, record: logging.LogRecord) -> None:
        self._pipe.send_bytes(msgspec.msgpack.encode(Progress(record.getMessage())))


def answered(task: Task) -> Message:
    """The answer to a task, or why there is none."""
    try:
        return _shaped(ask(task.verb, task.given), task)
    except DatahallError as error:
        return Refused(INFEASIBLE if error.exit_code == 1 else UNREADABLE, error.record())
    except MemoryError:
        return Refused(UNREADABLE, too_little_memory().record())


def _shaped(reply: Reply, task: Task) -> Done:
    answer = answer_of(reply)
    match task.shape:
        case "page":
            return Done("application/json", msgspec.json.encode(shown_answer(answer, task.verb, task.given)))
        case "trace":
            if not isinstance(reply, Traced):
                raise OutputError(f"{task.verb} has no trace", hint="simulate has one")
            return Done(TRACE, reply.trace())
        case "artefact":
            if not isinstance(reply, Deployable):
                raise OutputError(f"{task.verb} has no files to run", hint="plan has")
            return Done(TEXT, reply.artefact(task.name).encode())
        case shape:
            return Done(TYPES[shape], render(answer, shape).encode())
