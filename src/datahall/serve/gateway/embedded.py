"""A gateway without a file: one model, in this process, with keys, limits and books as any other."""

from __future__ import annotations

from collections.abc import Callable

from datahall.serve.config.settings import ModelSettings, ServerSettings, Settings, TargetSettings
from datahall.serve.gateway.running import Running, run_gateway
from datahall.serve.modelserver.llm.app import embedded
from datahall.serve.modelserver.llm.weights import NAME, Say

UPSTREAM = "embedded"


async def run_embedded(server: ServerSettings, when_ready: Callable[[Running], None], say: Say) -> bool:
    """Load the model that comes with the house, and serve it until told to end."""
    model, opened = embedded(say)
    await model.chat.load(opened)
    target = TargetSettings(upstream=UPSTREAM, model=NAME)
    settings = Settings(server=server, models=(ModelSettings(name=NAME, targets=(target,)),))
    try:
        return await run_gateway(settings, when_ready, {UPSTREAM: model})
    finally:
        await model.chat.close()
