"""The model server as one handler: every path it answers, in one table."""

from __future__ import annotations

from datahall.serve.http import Exchange
from datahall.serve.modelserver.answering import Routes, live, metrics, nowhere, routed
from datahall.serve.modelserver.described import description
from datahall.serve.modelserver.open_inference import ROOT, OpenInference
from datahall.serve.modelserver.predict import Predict
from datahall.serve.modelserver.shelf import Shelf
from datahall.serve.openapi import PATH


class ModelServer:
    """Models of a shelf over HTTP: `/predict` and `/health` for one of them, `/v2` for all."""

    def __init__(self, shelf: Shelf, name: str, server_version: str) -> None:
        self._open_inference = OpenInference(shelf, server_version)
        predict = Predict(shelf, name)
        self.routes: Routes = {
            "/predict": {"POST": predict.predict},
            "/health": {"GET": predict.health},
            "/health/live": {"GET": live},
            "/health/ready": {"GET": predict.ready},
            "/metrics": {"GET": lambda exchange: metrics(exchange, shelf.metrics())},
            PATH: {"GET": lambda exchange: exchange.send(200, description(server_version))},
        }

    def __call__(self, exchange: Exchange) -> None:
        """Answer one request, now or when its batch has run."""
        path = exchange.request.path
        if routed(self.routes, exchange):
            return
        if path == ROOT or path.startswith(f"{ROOT}/"):
            self._open_inference(exchange)
        else:
            nowhere(exchange)
