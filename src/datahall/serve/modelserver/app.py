"""The model server as one handler: every path it answers, in one table."""

from __future__ import annotations

import msgspec

from datahall.serve.http import Exchange
from datahall.serve.modelserver.answering import Routes
from datahall.serve.modelserver.open_inference import ROOT, OpenInference
from datahall.serve.modelserver.predict import Predict
from datahall.serve.modelserver.shelf import Shelf

METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class ModelServer:
    """Models of a shelf over HTTP: `/predict` and `/health` for one of them, `/v2` for all."""

    def __init__(self, shelf: Shelf, name: str, server_version: str) -> None:
        self._shelf = shelf
        self._open_inference = OpenInference(shelf, server_version)
        predict = Predict(shelf, name)
        self._routes: Routes = {
            "/predict": {"POST": predict.predict},
            "/health": {"GET": predict.health},
            "/health/live": {"GET": predict.live},
            "/health/ready": {"GET": predict.ready},
            "/metrics": {"GET": self._metrics},
        }

    def __call__(self, exchange: Exchange) -> None:
        """Answer one request, now or when its batch has run."""
        request = exchange.request
        by_method = self._routes.get(request.path)
        if by_method is not None:
            answer = by_method.get(request.method)
            if answer is not None:
                answer(exchange)
            else:
                allowed = ", ".join(by_method)
                exchange.send(405, _detail("Method Not Allowed"), (("Allow", allowed),))
        elif request.path == ROOT or request.path.startswith(f"{ROOT}/"):
            self._open_inference(exchange)
        else:
            exchange.send(404, _detail("Not Found"))

    def _metrics(self, exchange: Exchange) -> None:
        exchange.send(200, self._shelf.metrics().encode(), content_type=METRICS_TYPE)


def _detail(text: str) -> bytes:
    return msgspec.json.encode({"detail": text})
