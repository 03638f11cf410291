"""`datahall serve --virtual`: a simulated service on the command line."""

from __future__ import annotations

import re
import sys
from collections.abc import Coroutine, Mapping
from typing import TYPE_CHECKING, Any

import click

from datahall.errors import DatahallError, ScenarioError

if TYPE_CHECKING:
    from datahall.serve.virtual.running import Running

FASTEST, SLOWEST_RATIO = 1000.0, 1000.0


def serving(model: str, listen: str | None, typed: Mapping[str, Any]) -> Coroutine[Any, Any, bool]:
    """What serves a simulated fleet as it was asked for, once all of that is known to be right."""
    from datahall.answers.ask import form_of
    from datahall.catalog import load
    from datahall.cli.serve import where_to_listen
    from datahall.inference.fleet.build import fleet_of
    from datahall.scenario.read import read_names
    from datahall.scenario.scenario import Attempts
    from datahall.scenario.sections.traffic import USUAL_OUTPUT
    from datahall.serve.http.browsers import is_loopback
    from datahall.serve.virtual.running import Told, run_virtual
    from datahall.serve.virtual.slow import slowed

    host, port = ("127.0.0.1", 8080) if listen is None else where_to_listen(listen)
    if not is_loopback(host):
        raise ScenarioError(
            f"a virtual engine has no keys: anybody who reaches {host} could ask it",
            where="--listen",
            hint="listen on 127.0.0.1, and put a gateway before it",
        )
    speed = _ratio("--speed", typed["speed"] or "1", FASTEST)
    ratios = dict(_slow(one) for one in typed["slow"])
    given: dict[str, Any] = {"model": model, "rate": 1, **_chips(typed["on"])}
    given |= {name: typed[name] for name in ("replicas", "precision") if typed[name] is not None}
    if typed["failure"]:
        given["failure"] = list(typed["failure"])
    try:
        scenario = read_names(form_of("simulate serve"), given, load())
        attempts = Attempts(scenario)
        fleet = fleet_of(scenario, attempts, ())
        attempts.finish()
        assert fleet is not None
        fleet = slowed(fleet, ratios)
    except DatahallError as error:
        error.at_border(_spelled)
        raise
    name = scenario.root.model
    told = Told(fleet=fleet, name=name, host=host, port=port, usual_output=USUAL_OUTPUT, speed_ratio=speed)
    return run_virtual(told, tell)


def _spelled(name: str, value: str | None) -> str:
    """An input of a service as it is typed here: its chip and how many of it are one word."""
    from datahall.cli.serve import spelled_flag

    if name == "tp":
        return "--on" if value is None else f"--on {value}xCHIP"
    return spelled_flag({"model": "virtual", "chip": "on"}.get(name, name), value)


def tell(running: Running) -> None:
    """Say where it listens and how it is asked."""
    pace = "" if running.speed_ratio == 1.0 else f", {running.speed_ratio:g} times as fast"
    size = f"{running.num_replicas:,} simulated replicas, {running.num_chips:,} chips"
    said = '"messages":[{"role":"user","content":"Hello"}],"max_tokens":20,"stream":true'
    body = f'{{"model":"{running.name}",{said}}}'
    click.echo(f"{running.url} answers for {running.name} ({size}{pace})")
    click.echo(f"curl -N {running.url}/v1/chat/completions -d '{body}'")
    sys.stdout.flush()


def _chips(on: str | None) -> dict[str, Any]:
    """The chip, and how many of it a replica has: 4xh100, or h100 alone.

    >>> _chips("4xh100"), _chips("h200")
    ({'chip': 'h100', 'tp': 4}, {'chip': 'h200'})
    """
    if on is None:
        return {}
    found = re.fullmatch(r"(?:(\d{1,6})[x×])?(\S+)", on)
    if found is None:
        raise ScenarioError(f'"{on}" is no chips', where="--on", hint="e.g. 4xh100: four of them a replica")
    return {"chip": found[2], **({"tp": int(found[1])} if found[1] else {})}


def _slow(typed: str) -> tuple[int, float]:
    number, _, ratio = typed.partition("=")
    if not number.isdecimal() or len(number) > 6:
        raise ScenarioError(f'"{typed}" names no replica', where="--slow", hint="e.g. 0=2: twice as long")
    return int(number), _ratio("--slow", ratio, SLOWEST_RATIO)


def _ratio(flag: str, typed: str, most: float) -> float:
    try:
        ratio = float(typed)
    except ValueError:
        ratio = 0.0
    if not 1.0 / most <= ratio <= most:
        raise ScenarioError(f'"{typed}" is not {1.0 / most:g} to {most:g}', where=flag)
    return ratio
