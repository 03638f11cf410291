"""One load from its settings to its figures."""

from __future__ import annotations

import gc
from secrets import token_hex

import msgspec

from datahall.serve.http import run
from datahall.serve.load.drive import Drive, drive
from datahall.serve.load.measured import Measured, measure
from datahall.serve.load.target import Target


class Load(msgspec.Struct, frozen=True, kw_only=True):
    """An endpoint, and what is sent to it."""

    url: str
    key: str = ""
    model: str = ""  # at the endpoint; nothing: the first that it lists
    what: Drive


def play(load: Load) -> tuple[str, Measured]:
    """The model that was asked, and what was measured."""
    gc.freeze()
    try:
        return run(_play(load))
    finally:
        gc.unfreeze()


async def _play(load: Load) -> tuple[str, Measured]:
    target = Target(load.url, load.key, load.model)
    try:
        await target.find_model()
        return target.model, measure(
            await drive(target, msgspec.structs.replace(load.what, salt=token_hex(8)))
        )
    finally:
        target.client.close()
