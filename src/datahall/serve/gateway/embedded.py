"""Models in the gateway's own process, with keys, limits and books as any other: the one of the house, and files."""

from __future__ import annotations

from collections.abc import Callable

from datahall.serve.config.settings import ModelSettings, ServerSettings, Settings, TargetSettings
from datahall.serve.gateway.running import Anew, Running, run_gateway
from datahall.serve.modelserver.llm.app import embedded
from datahall.serve.modelserver.llm.weights import NAME, Say
from datahall.serve.modelserver.mounted import mounted

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


async def run_mounted(settings: Settings, when_ready: Callable[[Running], None], anew: Anew) -> bool:
    """Load the models of files that upstreams are, and serve them until told to end."""
    files = {one.name: one.file for one in settings.upstreams if one.file}
    async with mounted(files) as handlers:
        return await run_gateway(settings, when_ready, handlers, anew)
