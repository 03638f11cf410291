"""The root command, and the process boundary: every error leaves as a sentence and an exit code.

0 yes · 1 the answer is no · 2 bad input · 3 our bug · 130 interrupted
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Sequence
from itertools import pairwise

import click

from datahall import __version__
from datahall.cli.groups import SETTINGS, Root
from datahall.cli.process import leave, settle
from datahall.cli.streams import Closed, silence
from datahall.errors import DatahallError, OutputError, too_little_memory


@click.group(
    cls=Root,
    invoke_without_command=True,
    context_settings=SETTINGS,
    epilog="Each verb: datahall VERB --help. Completion for your shell: datahall completion bash.",
)
@click.version_option(__version__, "--version", message="datahall %(version)s")
@click.option("--debug", is_flag=True, help="Show the traceback of an error.")
@click.pass_context
def root(context: click.Context, debug: bool) -> None:
    """What AI infrastructure you need, how fast it will be, what it costs, and how sure that is."""
    del debug  # read from the arguments where errors are caught
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and end the process."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    sys.stdout = sys.stdout or Closed()  # by who started us
    sys.stderr = sys.stderr or open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
    settle()
    code = run(words)
    try:
        sys.stdout.flush()
    except OSError:
        silence()
    leave()
    sys.exit(code)


def run(words: Sequence[str]) -> int:
    """Run the command line and return its exit code."""
    try:
        code = root.main(list(words), prog_name="datahall", standalone_mode=False, obj={"words": list(words)})
        return code if isinstance(code, int) else 0
    except DatahallError as error:
        return _failed(error, words)
    except click.exceptions.Abort:
        return _say("interrupted", 130)
    except click.ClickException as error:
        return _misused(error, words)
    except KeyboardInterrupt:
        return _say("interrupted", 130)
    except SystemExit:  # how click ends when nobody reads its output any more
        silence()
        return 0
    except OSError as error:
        return _failed(OutputError(f"could not write: {error.strerror or error}"), words)
    except MemoryError:
        return _failed(too_little_memory(), words)
    except Exception as error:  # the process boundary: whatever is left is ours
        return _bug(error, words)


def _failed(error: DatahallError, words: Sequence[str]) -> int:
    if "--debug" in words:
        _traceback()
    _record(error.record(), words)
    return _say(str(error), error.exit_code)


def _misused(error: click.ClickException, words: Sequence[str]) -> int:
    from datahall.cli.usage import lines

    text = lines(error)
    _record({"code": "usage", "exit_code": 2, "message": text[0].removeprefix("error[usage]: ")}, words)
    return _say("\n".join(text), 2)


def _bug(error: Exception, words: Sequence[str]) -> int:
    _record({"code": "bug", "exit_code": 3, "message": f"{type(error).__name__}: {error}"}, words)
    if "--debug" in words:
        _traceback()
        return _say(f"error[bug]: {type(error).__name__}: {error}", 3)
    return _say(
        f"error[bug]: this is a bug in datahall ({type(error).__name__}); --debug shows where it is",
        3,
    )


def _record(record: dict[str, object], words: Sequence[str]) -> None:
    """Where JSON was asked for on standard output, the error stands there as an object too."""
    asked = {"--json", "--format=json"} & {*words} or ("--format", "json") in pairwise(words)
    elsewhere = any(
        word.startswith(("-o", "--output")) and word not in ("-o-", "--output=-") for word in words
    )
    if not asked or elsewhere:
        return
    import json

    empty = {"code": "", "exit_code": 2, "message": "", "field": "", "where": "", "hint": "", "problems": []}
    body = {"schema": "datahall/error", "version": 1, "error": {**empty, **record}}
    with contextlib.suppress(OSError):
        print(json.dumps(body, ensure_ascii=False, indent=2), flush=True)


def _traceback() -> None:
    import traceback

    traceback.print_exc()


def _say(text: str, code: int) -> int:
    with contextlib.suppress(OSError):
        print(text, file=sys.stderr, flush=True)
    return code
