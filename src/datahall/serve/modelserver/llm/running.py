"""The gateway with nothing but the embedded model behind it, for whoever configures nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from datahall.serve.config import Settings
from datahall.serve.config.settings import ModelSettings, ServerSettings, TargetSettings
from datahall.serve.gateway.running import Running, run_gateway
from datahall.serve.modelserver.llm.app import embedded
from datahall.serve.modelserver.llm.weights import NAME, Say


def embedded_settings(server: ServerSettings) -> Settings:
    """One model, answered in this process."""
    model = ModelSettings(name=NAME, targets=(TargetSettings(upstream=NAME, model=NAME),))
    return Settings(server=server, models=(model,))


async def run_embedded(server: ServerSettings, say: Say, when_ready: Callable[[Running], None]) -> bool:
    """Serve until SIGTERM or SIGINT; whether every request had ended within the grace."""
    handler, opened = embedded(say)
    await handler.chat.load(opened)
    try:
        return await run_gateway(embedded_settings(server), when_ready, {NAME: handler})
    finally:
        await asyncio.shield(handler.chat.close())
