"""`datahall completion`: the script that lets a shell complete our commands."""

from __future__ import annotations

import click

from datahall.cli.groups import SETTINGS, write_examples

EXAMPLES = (
    "datahall completion bash >> ~/.bashrc",
    "datahall completion zsh >> ~/.zshrc",
    "datahall completion fish > ~/.config/fish/completions/datahall.fish",
)


class Completion(click.Command):
    """A command whose help shows examples first."""

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        super().format_help_text(ctx, formatter)
        write_examples(EXAMPLES, formatter)


@click.command("completion", cls=Completion, context_settings=SETTINGS)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print the completion script of a shell."""
    from click.shell_completion import get_completion_class

    from datahall.cli.main import root

    script = get_completion_class(shell)
    assert script is not None
    complete = script(root, {}, "datahall", "_DATAHALL_COMPLETE")
    click.echo(complete.source_template % complete.source_vars())
