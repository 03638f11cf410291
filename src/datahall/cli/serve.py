"""`datahall serve`: the gateway on the command line; it says where it listens, and ends when it is told to."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from datahall.cli.groups import SETTINGS, write_examples
from datahall.errors import InfeasibleError, ScenarioError

if TYPE_CHECKING:
    from datahall.serve.gateway.running import Running

EXAMPLES = (
    "datahall serve",
    "datahall serve gateway.toml",
    "datahall serve gateway.toml --listen 127.0.0.1:9000",
)


class Serve(click.Command):
    """A command whose help shows examples first."""

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        super().format_help_text(ctx, formatter)
        write_examples(EXAMPLES, formatter)


@click.command("serve", cls=Serve, context_settings=SETTINGS)
@click.argument("file", metavar="[GATEWAY.TOML]", required=False)
@click.option("--listen", metavar="HOST:PORT", help="Where to listen, in place of what the file says.")
@click.option(
    "--state", metavar="FOLDER", help="Where keys and usage are kept, in place of what the file says."
)
@click.option("--debug", is_flag=True, help="Show the traceback of an error.")
def serve(file: str | None, listen: str | None, state: str | None, debug: bool) -> None:
    """An endpoint for models: keys, limits, budgets, routing, retries, before many servers.

    Without a file it answers with a small model that runs in this process. SIGTERM lets requests end and closes the
    books. What is wrong with a file: datahall check FILE.
    """
    del debug  # read from the arguments where errors are caught
    try:
        from datahall.serve.http import run
    except ImportError as error:
        raise ScenarioError(
            f"serving needs the extra serve: {error.name} is not installed",
            hint='pip install "datahall[serve]"',
        ) from None
    import msgspec

    from datahall.serve.config import Settings, read_settings
    from datahall.serve.config.values import Wrong, address, is_loopback
    from datahall.serve.gateway.running import run_gateway

    settings = Settings() if file is None else read_settings(Path(file), datetime.now(UTC).date())
    server = settings.server
    if listen is not None:
        try:
            host, port = address(listen)
        except Wrong as wrong:
            raise ScenarioError(str(wrong), where="--listen") from None
        server = msgspec.structs.replace(server, host=host, port=port)
        if not server.has_auth and not is_loopback(host):
            raise ScenarioError(
                f"without keys anybody who reaches {host} could ask",
                where="--listen",
                hint="auth = true in the file",
            )
    if state is not None:
        server = msgspec.structs.replace(server, state=state)
    if file is None:
        from datahall.serve.gateway.embedded import run_embedded

        work = run_embedded(server, tell, lambda line: click.echo(line, err=True))
    else:
        work = run_gateway(msgspec.structs.replace(settings, server=server), tell)
    if not run(work):
        raise InfeasibleError("requests were broken off, as they did not end in time", hint="a longer drain")


def tell(running: Running) -> None:
    """Say where it listens and how it is asked."""
    lines = [f"{running.url} answers for {', '.join(running.models)}"]
    if running.secret:
        lines.append(f"key  {running.secret}   (shown this once)")
    header = f" -H 'authorization: Bearer {running.secret or '$KEY'}'" if running.has_auth else ""
    body = f'{{"model":"{running.models[0]}","messages":[{{"role":"user","content":"Hello"}}]}}'
    lines.append(f"curl {running.url}/v1/chat/completions{header} -d '{body}'")
    click.echo("\n".join(lines))
    sys.stdout.flush()
