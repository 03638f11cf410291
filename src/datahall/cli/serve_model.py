"""`datahall serve --model`: one model on the command line."""

from __future__ import annotations

import sys
from collections.abc import Coroutine, Mapping
from typing import TYPE_CHECKING, Any

import click

from datahall import __version__
from datahall.errors import DatahallError, ScenarioError

if TYPE_CHECKING:
    from datahall.serve.modelserver.running import Running

MOST_BATCH, MOST_WORKERS = 65_536, 256


def serving(model: str, listen: str | None, typed: Mapping[str, Any]) -> Coroutine[Any, Any, bool]:
    """What serves a model as it was asked for, once all of that is known to be right."""
    from datahall.cli.serve import spelled_flag, where_to_listen
    from datahall.scenario.idle import do_nothing
    from datahall.serve.http.browsers import is_loopback
    from datahall.serve.modelserver.batcher import Batching
    from datahall.serve.modelserver.runners.open import check
    from datahall.serve.modelserver.running import Told, run_model

    host, port = ("127.0.0.1", 8080) if listen is None else where_to_listen(listen)
    if not is_loopback(host):
        raise ScenarioError(
            f"a model has no keys: anybody who reaches {host} could ask it",
            where="--listen",
            hint="listen on 127.0.0.1, and put a gateway before it",
        )
    admin = None if typed["admin"] is None else where_to_listen(typed["admin"], "--admin")
    if admin is not None and not is_loopback(admin[0]):
        raise ScenarioError(
            f"anybody who reaches {admin[0]} could unload the model",
            where="--admin",
            hint="e.g. 127.0.0.1:8090",
        )
    most_rows = _count("--batch", typed["batch"], 32, MOST_BATCH)
    batching = Batching(
        most_rows=most_rows,
        delay_s=_delay_s(typed["delay"]),
        num_workers=_count("--workers", typed["workers"], 1, MOST_WORKERS),
        most_queued=max(Batching().most_queued, 4 * most_rows),
    )
    if batching.delay_s and batching.num_workers == 1:
        raise ScenarioError(
            do_nothing(
                ["--delay"],
                "one worker that runs takes no other batch, and one that does not waits for nobody",
            ),
            where="--delay",
            hint="--workers 2 or more beside it",
        )
    allowed = tuple(typed["allow_pickle"])
    try:
        check(model, allowed)
    except DatahallError as error:
        error.at_border(spelled_flag)
        raise
    told = Told(
        path=model, host=host, port=port, batching=batching, allow_pickle=allowed, server_version=__version__,
        admin=admin,
    )  # fmt: skip
    return run_model(told, tell, lambda line: click.echo(line, err=True))


def tell(running: Running) -> None:
    """Say where it listens and how it is asked."""
    lines = [f"{running.url} answers for {running.name} ({running.platform})"]
    if running.example:
        lines.append(f"curl {running.url}/predict -d '{running.example}'")
    else:
        lines.append(f"curl {running.url}/v2/models/{running.name}")
    if running.admin_url:
        lines.insert(1, f"{running.admin_url}/v2/repository/models/{running.name}/load and /unload, by POST")
    click.echo("\n".join(lines))
    sys.stdout.flush()


def _count(flag: str, typed: str | None, usual: int, most: int) -> int:
    from datahall.serve.config.values import Wrong, count

    if typed is None:
        return usual
    try:
        return int(count(1, most)(int(typed) if typed.isdecimal() and len(typed) < 12 else typed))
    except Wrong as wrong:
        raise ScenarioError(str(wrong), where=flag) from None


def _delay_s(typed: str | None) -> float:
    from datahall.serve.config.values import Wrong, seconds

    if typed is None:
        return 0.0
    try:
        return float(seconds(0.0)(typed))
    except Wrong as wrong:
        raise ScenarioError(str(wrong), where="--delay") from None
