"""A request taken its way, and what becomes of it where the way ends early: refused, left, or a mistake of ours."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from datahall.serve.gateway.question import Kind
from datahall.serve.gateway.refusing import Refused, break_off
from datahall.serve.gateway.way import Way
from datahall.serve.http import Exchange

if TYPE_CHECKING:
    from datahall.serve.gateway.gateway import Gateway


async def answer(gateway: Gateway, exchange: Exchange, kind: Kind) -> None:
    """Take one request from its key to its bill."""
    way = Way(gateway, exchange, kind)
    try:
        way.enter()
        if gateway.answers is None or not await way.recall(gateway.answers):
            way.admit()
            await way.ask()
    except Refused as refused:
        way.refuse(refused)
    except asyncio.CancelledError:
        if exchange.is_cut_off:
            break_off(exchange, way.request_id, kind)
        raise
    except Exception:  # a mistake of ours, which the server answers and reports
        way.fail()
        raise
    finally:
        if not way.is_led_on:
            way.settle()
