"""A ledger in a folder, keys in it, and prices that are easy to reckon with."""

from __future__ import annotations

from pathlib import Path

from datahall.serve.ledger.folder import Folder
from datahall.serve.ledger.key import Key, Limits
from datahall.serve.ledger.keys import create
from datahall.serve.ledger.ledger import Ledger
from datahall.serve.ledger.money import Price, Usage

START_NS = 1_795_000_000 * 10**9  # 2026-11-18
SECOND_NS = 10**9
# nano-dollars of a token: 1,000 in, 500 cached, 2,000 out; and ten times that
CHEAP = Price(input_nano_usd=10**9, cached_nano_usd=5 * 10**8, output_nano_usd=2 * 10**9)
DEAR = Price(input_nano_usd=10**10, cached_nano_usd=5 * 10**9, output_nano_usd=2 * 10**10, call_nano_usd=7)
MODELS = {"small": CHEAP, "large": DEAR}


def opened(path: Path, now_ns: int = START_NS, **more: int) -> Ledger:
    return Ledger(Folder(path), MODELS, now_ns, **more)


def key_in(path: Path, name: str = "acme", customer: str = "", **limits: int | str) -> tuple[Key, str]:
    """A key with some limits, made as another process makes it."""
    folder = Folder(path)
    store = folder.store()
    try:
        return create(
            store,
            folder.pepper(store),
            name=name,
            customer=customer,
            limits=Limits(**limits),
            now_ns=START_NS,
        )
    finally:
        store.close()


def limited(path: Path, customer: str, **limits: int | str) -> None:
    """Limits for a customer, written as another process writes them."""
    store = Folder(path).store()
    try:
        store.limit_customer(customer, Limits(**limits))
    finally:
        store.close()


def totals(path: Path) -> dict[tuple[int, str, str], tuple[int, int, int]]:
    """By key, model and outcome: requests, tokens and nano-dollars of all time."""
    store = Folder(path).store()
    try:
        return {
            (one.key, one.model, one.outcome): (one.requests, one.prompt + one.completion, one.nano_usd)
            for one in store.totals(0, 2**62)
        }
    finally:
        store.close()


TEN = Usage(10, 0, 10)  # 30,000 nano-dollars of the small model
