"""`datahall serve`: the gateway on the command line; it says where it listens, and ends when it is told to."""

from __future__ import annotations

import sys
from collections.abc import Coroutine
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from datahall.cli.groups import SETTINGS, write_examples
from datahall.errors import DatahallError, InfeasibleError, ScenarioError
from datahall.scenario.form import flag_of

if TYPE_CHECKING:
    from datahall.serve.gateway.running import Running

EXAMPLES = (
    "datahall serve",
    "datahall serve --model model.onnx",
    "datahall serve --virtual llama-3.1-70b --on 4xh100 --replicas 3",
    "datahall serve gateway.toml",
    "datahall serve gateway.toml --listen 127.0.0.1:9000",
)
OF_VIRTUAL = ("on", "replicas", "precision", "speed", "slow", "failure")


class Serve(click.Command):
    """A command whose help shows examples first."""

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        super().format_help_text(ctx, formatter)
        write_examples(EXAMPLES, formatter)


@click.command("serve", cls=Serve, context_settings=SETTINGS)
@click.argument("file", required=False, metavar="[GATEWAY.TOML]")
@click.option(
    "--model",
    metavar="FILE",
    help="Serve one model: .onnx, .pt (TorchScript), .py (its predict, or FILE:NAME).",
)
@click.option(
    "--virtual", metavar="MODEL", help="Answer as a simulated service of a model of the catalogue would."
)
@click.option(
    "--listen", metavar="HOST:PORT", help="Where to listen, in place of 127.0.0.1:8080 or the file's."
)
@click.option(
    "--state",
    metavar="FOLDER",
    help="Where keys and usage are kept, in place of the usual place or the file's.",
)
@click.option("--batch", metavar="ROWS", help="With --model: most rows in one call of the model (32).")
@click.option(
    "--delay",
    metavar="TIME",
    help="With --model: how long a batch waits for more while the model is busy (0s).",
)
@click.option("--workers", metavar="N", help="With --model: calls of the model side by side (1).")
@click.option(
    "--allow-pickle", multiple=True, metavar="NAME",
    help="With --model: the name of a .pkl file that may run its code when it is loaded.",
)  # fmt: skip
@click.option(
    "--admin", metavar="HOST:PORT",
    help="With --model: where the model is loaded and unloaded by POST /v2/repository/…; else nowhere.",
)  # fmt: skip
@click.option("--on", metavar="NxCHIP", help="With --virtual: chips of a replica, e.g. 4xh100.")
@click.option("--replicas", metavar="N", help="With --virtual: replicas behind the router (1).")
@click.option("--precision", metavar="FORMAT", help="With --virtual: number format (bf16).")
@click.option("--speed", metavar="RATIO", help="With --virtual: simulated seconds in a second (1).")
@click.option(
    "--slow", multiple=True, metavar="N=RATIO", help="With --virtual: replica N takes so many times as long."
)
@click.option(
    "--failure", multiple=True, metavar="TABLE",
    help='With --virtual: what fails when, e.g. "replicas=0,start=30s,duration=10s".',
)  # fmt: skip
@click.option("--debug", is_flag=True, help="Show the traceback of an error.")
def serve(
    file: str | None,
    model: str | None,
    virtual: str | None,
    listen: str | None,
    state: str | None,
    debug: bool,
    **typed: Any,
) -> None:
    """An endpoint: a small language model at once, a model of yours, or models of many servers.

    With a file it is a gateway: keys, limits, budgets, routing, retries; it speaks OpenAI's API and Anthropic's
    messages; SIGHUP has its file read anew. What is wrong with a file: datahall check FILE. With --model it answers
    POST /predict, GET /health and the Open Inference Protocol; SIGHUP swaps the model for what is in its file by then.
    With --virtual it answers OpenAI's API when a simulated fleet would. With none of them it answers OpenAI's chat with
    a language model of 135 million parameters. SIGTERM lets requests end and closes the books.
    """
    del debug  # read from the arguments where errors are caught
    try:
        from datahall.serve.http import run
    except ImportError as error:
        raise ScenarioError(
            f"serving needs the extra serve: {error.name} is not installed",
            hint='pip install "datahall[serve]"',
        ) from None
    of_virtual = {name: typed.pop(name) for name in OF_VIRTUAL}
    if virtual is not None:
        _refuse_idle({"GATEWAY.TOML": file, "model": model, "state": state, **typed}, "there is --virtual")
        from datahall.cli.serve_virtual import serving as simulated

        work = simulated(virtual, listen, of_virtual)
    elif model is None:
        _refuse_idle(of_virtual, "there is no --virtual")
        _refuse_idle(typed, "there is no --model")
        work = _gateway(file, listen, state)
    else:
        _refuse_idle(of_virtual, "there is no --virtual")
        _refuse_idle({"GATEWAY.TOML": file, "state": state}, "there is --model")
        from datahall.cli.serve_model import serving

        work = serving(model, listen, typed)
    try:
        is_whole = run(work)
    except DatahallError as error:
        error.at_border(spelled_flag)
        raise
    if not is_whole:
        raise InfeasibleError("requests were broken off, as they did not end in time", hint="a longer drain")


def _refuse_idle(said: dict[str, Any], why: str) -> None:
    """What would do nothing is refused."""
    from datahall.scenario.idle import do_nothing

    for name, value in said.items():
        if value not in (None, ()):
            flag = name if name.isupper() else flag_of(name)
            raise ScenarioError(do_nothing([flag], why), where=flag, hint="leave it out")


def _gateway(file: str | None, listen: str | None, state: str | None) -> Coroutine[Any, Any, bool]:
    """The gateway of a file, or the one before the embedded model."""
    import msgspec

    from datahall.serve.config import read_settings
    from datahall.serve.config.settings import ServerSettings, Settings
    from datahall.serve.gateway.running import Anew, run_gateway
    from datahall.serve.http.browsers import is_loopback

    def placed(server: ServerSettings) -> ServerSettings:
        """What was typed beside the file, over what it says."""
        if state is not None:
            server = msgspec.structs.replace(server, state=state)
        if listen is None:
            return server
        host, port = where_to_listen(listen)
        server = msgspec.structs.replace(server, host=host, port=port)
        if not server.has_auth and not is_loopback(host):
            raise ScenarioError(
                f"without keys anybody who reaches {host} could ask",
                where="--listen",
                hint="auth = true in the file",
            )
        return server

    def read() -> Settings:
        settings = read_settings(Path(str(file)), datetime.now(UTC).date())
        return msgspec.structs.replace(settings, server=placed(settings.server))

    def say(line: str) -> None:
        click.echo(line, err=True)

    if file is None:
        from datahall.serve.gateway.embedded import run_embedded

        return run_embedded(placed(ServerSettings()), tell, say)
    settings, anew = read(), Anew(read, say)
    if not any(one.file for one in settings.upstreams):
        return run_gateway(settings, tell, anew=anew)
    from datahall.serve.gateway.embedded import run_mounted

    return run_mounted(settings, tell, anew)


def spelled_flag(name: str, value: str | None) -> str:
    """An input as it is typed here."""
    return flag_of(name) if value is None else f"{flag_of(name)} {value}"


def where_to_listen(listen: str, flag: str = "--listen") -> tuple[str, int]:
    """Host and port, as they were typed."""
    from datahall.serve.config.values import Wrong, address

    try:
        host, port = address(listen)
    except Wrong as wrong:
        raise ScenarioError(str(wrong), where=flag) from None
    return host, port


def tell(running: Running) -> None:
    """Say where it listens and how it is asked."""
    lines = [f"{running.url} answers for {', '.join(running.models)}"]
    if running.admin_url:
        lines.append(f"{running.admin_url} is asked by who runs it, with the admin's key")
    if running.secret:
        lines.append(f"key  {running.secret}   (shown this once)")
    header = f" -H 'authorization: Bearer {running.secret or '$KEY'}'" if running.has_auth else ""
    body = f'{{"model":"{running.models[0]}","messages":[{{"role":"user","content":"Hello"}}]}}'
    lines.append(f"curl {running.url}/v1/chat/completions{header} -d '{body}'")
    click.echo("\n".join(lines))
    sys.stdout.flush()
