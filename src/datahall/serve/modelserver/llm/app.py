"""The embedded model as one handler: OpenAI's chat and completions, the list of models, health and counters."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import msgspec

from datahall.serve.http import Exchange
from datahall.serve.modelserver.answering import Routes, live, metrics, nowhere, ready, routed
from datahall.serve.modelserver.llm.chat import Chat
from datahall.serve.modelserver.llm.engine import Engine, Llama, Slots
from datahall.serve.modelserver.llm.weights import NAME, Say, weights


class ChatServer:
    """A chat over HTTP, or in process as an upstream of a gateway."""

    def __init__(self, chat: Chat) -> None:
        self.chat = chat
        self._routes: Routes = {
            "/v1/chat/completions": {"POST": chat.chat},
            "/v1/completions": {"POST": chat.complete},
            "/v1/models": {"GET": chat.models},
            "/health": {"GET": self._health},
            "/health/live": {"GET": live},
            "/health/ready": {"GET": lambda exchange: ready(exchange, is_ready=chat.is_ready)},
            "/metrics": {"GET": lambda exchange: metrics(exchange, chat.meter.exposition(chat.name))},
        }

    def __call__(self, exchange: Exchange) -> None:
        """Answer one request, now or as the model speaks."""
        if not routed(self._routes, exchange):
            nowhere(exchange)

    def _health(self, exchange: Exchange) -> None:
        is_loaded = self.chat.is_ready
        said = {"status": "healthy" if is_loaded else "loading", "model_loaded": is_loaded}
        exchange.send(200, msgspec.json.encode(said))


def embedded(say: Say, slots: Slots | None = None) -> tuple[ChatServer, Callable[[], Engine]]:
    """The model that comes with the house, and what opens it: `await server.chat.load(opened)`."""
    return ChatServer(Chat(NAME)), partial(_opened, say, slots or Slots())


def _opened(say: Say, slots: Slots) -> Engine:
    return Llama(weights(say), NAME, slots)
