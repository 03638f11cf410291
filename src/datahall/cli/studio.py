"""`datahall studio`: the page in a browser; it says where it is, opens it, and ends when it is told to."""

from __future__ import annotations

import webbrowser

import click

from datahall.cli.groups import SETTINGS, write_examples
from datahall.errors import ScenarioError

EXAMPLES = (
    "datahall studio",
    "datahall studio --listen 127.0.0.1:9000 --no-open",
)


class Studio(click.Command):
    """A command whose help shows examples first."""

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        super().format_help_text(ctx, formatter)
        write_examples(EXAMPLES, formatter)


@click.command("studio", cls=Studio, context_settings=SETTINGS)
@click.option("--listen", metavar="HOST:PORT", help="Where to listen (127.0.0.1, a port that is free).")
@click.option(
    "--workers", metavar="N", type=click.IntRange(1, 64), help="Processes that answer (one a core)."
)
@click.option("--open/--no-open", "opens", default=True, help="Open it in the browser.")
@click.option("--debug", is_flag=True, help="Show the traceback of an error.")
def studio(listen: str | None, workers: int | None, opens: bool, debug: bool) -> None:
    """Every question in a browser: plan, topology, chips, training, serving, power, cost, and how far off we are.

    It runs on this machine alone, asks nothing of any other, and keeps nothing. Ctrl-C ends it.
    """
    del debug  # read from the arguments where errors are caught
    try:
        from datahall.serve.http import run
    except ImportError as error:
        raise ScenarioError(
            f"the studio needs the extra serve: {error.name} is not installed",
            hint='pip install "datahall[serve]"',
        ) from None
    from datahall import __version__
    from datahall.cli.serve import where_to_listen
    from datahall.studio.running import Told, run_studio

    host, port = ("127.0.0.1", 0) if listen is None else where_to_listen(listen)

    def ready(url: str) -> None:
        click.echo(f"{url}  (Ctrl-C ends it)")
        if opens:
            webbrowser.open(url)

    run(run_studio(Told(host=host, port=port, version=__version__, num_workers=workers or 0), ready))
