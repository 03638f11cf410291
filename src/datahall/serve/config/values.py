"""Values of `gateway.toml`: each reader takes what stands there and gives what is meant, or says what it should be."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from ipaddress import ip_address
from typing import Any, TypeAlias

from datahall.errors import DatahallError, nearest
from datahall.scenario.kinds.budgets import Spending, spending
from datahall.serve.http import Origin
from datahall.serve.ledger.money import nano_usd
from datahall.units import parse

Reader: TypeAlias = Callable[[Any], Any]
MOST_USD = 1e6  # of a million tokens


class Wrong(Exception):
    """A value that cannot be meant, and what may stand there."""


def text(value: Any) -> str:
    if not isinstance(value, str) or not value.strip():
        raise Wrong(f"{shown(value)} is no text")
    return value


def truth(value: Any) -> bool:
    if not isinstance(value, bool):
        raise Wrong(f"{shown(value)} is neither true nor false")
    return value


def count(least: int, most: int = 10**9) -> Reader:
    def read(value: Any) -> int:
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
            raise Wrong(f"{shown(value)} is not a whole number of {least} to {most}")
        return value

    return read


def seconds(least_s: float = 0.001) -> Reader:
    return _quantity("s", least_s, 86400.0, 'seconds, e.g. "30s"')


def share(value: Any) -> float:
    return float(_quantity("fraction", 0.0, 1.0, "a share of 0 to 1")(value))


def size(value: Any) -> int:
    return int(_quantity("bytes", 1.0, 2**33, 'a size, e.g. "10 MB"')(value))


def one_of(words: Sequence[str]) -> Reader:
    def read(value: Any) -> str:
        if value not in words:
            near = nearest(str(value), words, 1)
            guess = f"; did you mean {near[0]}?" if near else ""
            raise Wrong(f"{shown(value)} is not one of {', '.join(words)}{guess}")
        return str(value)

    return read


def names(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(one, str) and one for one in value):
        raise Wrong(f"{shown(value)} is not a list of names")
    if len(set(value)) < len(value):
        raise Wrong(f"{shown(value)} names something twice")
    return tuple(value)


def dollars(value: Any) -> int:
    """Nano-dollars of what a million tokens cost."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= MOST_USD:
        raise Wrong(f"{shown(value)} is not US dollars per million tokens, 0 or more")
    return nano_usd(value)


def budget(value: Any) -> Spending:
    """Dollars over a span of time, as a key has them."""
    try:
        return spending(text(value))
    except DatahallError as error:
        raise Wrong(f"{error.message}; {error.hint}") from None


def secret(value: Any) -> str:
    """Where a secret is; one that stands in the file itself would be in every copy of it."""
    if not isinstance(value, str) or not value.startswith(("env:", "file:")) or value.endswith(":"):
        raise Wrong("a secret is named, not written: env:NAME of a variable or file:PATH")
    return value


def url(value: Any) -> str:
    try:
        origin = Origin.of(text(value))
    except DatahallError as error:
        raise Wrong(f"{error.message}; {error.hint}") from None
    try:
        is_local_link = ip_address(origin.host).is_link_local
    except ValueError:
        is_local_link = False
    if is_local_link:
        raise Wrong(
            f"{origin.host} is an address of the machine's own network, where clouds keep credentials"
        )
    return str(value)


def path(value: Any) -> str:
    if not isinstance(value, str) or not value.startswith("/") or set(value) & set(" \r\n\t"):
        raise Wrong(f"{shown(value)} is no path; it begins with /")
    return value


def model_file(value: Any) -> str:
    """A file that a model can be loaded from."""
    from datahall.serve.modelserver.runners.open import check

    try:
        check(text(value))
    except DatahallError as error:
        raise Wrong(error.message) from None
    return str(value)


def address(value: Any) -> tuple[str, int]:
    """Host and port to listen on."""
    host, _, port = str(value).rpartition(":")
    if not isinstance(value, str) or not host or not port.isdigit() or int(port) > 65535:
        raise Wrong(f"{shown(value)} is no address; e.g. 127.0.0.1:8080")
    return host.strip("[]"), int(port)


def shown(value: Any) -> str:
    word = f'"{value}"' if isinstance(value, str) else str(value)
    return word if len(word) <= 60 else f"{word[:57]}…"


def _quantity(unit: str, least: float, most: float, example: str) -> Reader:
    def read(value: Any) -> float:
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            raise Wrong(f"{shown(value)} is not {example}")
        try:
            found = parse(value, unit)
        except DatahallError:
            raise Wrong(f"{shown(value)} is not {example}") from None
        if not least <= found <= most:
            raise Wrong(f"{shown(value)} is not {least:g} to {most:g}")
        return found

    return read
