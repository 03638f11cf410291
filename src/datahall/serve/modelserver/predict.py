"""POST /predict and GET /health: the fields, types and status codes of a plain FastAPI model server.

`{"features": [...]}` in, `{"prediction": [...], "latency_ms": …}` out; errors as `{"detail": …}`, 422 for a body that
cannot be read and 500 for a model that fails.  Beside it, what an orchestrator probes.
"""

from __future__ import annotations

import re
from time import perf_counter

import msgspec
import numpy as np

from datahall.serve.http import Exchange
from datahall.serve.modelserver.answering import NOT_READY_S, detail, ready, retry_after
from datahall.serve.modelserver.refused import BadInput, Refused, UnknownModel
from datahall.serve.modelserver.runners.runner import Arrays
from datahall.serve.modelserver.shelf import Shelf
from datahall.serve.modelserver.tensor import array_of


class PredictRequest(msgspec.Struct):
    """What a client sends."""

    features: list[float]


class PredictResponse(msgspec.Struct):
    """What it is answered."""

    prediction: list[float]
    latency_ms: float


class HealthResponse(msgspec.Struct):
    """How the model does."""

    status: str
    model_loaded: bool
    avg_latency_ms: float


_REQUESTS = msgspec.json.Decoder(PredictRequest)
_ENCODER = msgspec.json.Encoder()


class Predict:
    """One model of a shelf, asked for one row at a time."""

    def __init__(self, shelf: Shelf, name: str) -> None:
        self._shelf = shelf
        self._name = name

    def predict(self, exchange: Exchange) -> None:
        """Answer once the batch has run that this row is in."""
        asked_s = perf_counter()
        try:
            features = _REQUESTS.decode(exchange.request.body).features
        except (msgspec.DecodeError, RecursionError) as error:
            exchange.send(422, detail([_problem(str(error))]))
            return
        try:
            version = self._shelf.get(self._name)
            if len(version.runner.inputs) != 1:
                raise BadInput(f"{self._name} has several inputs: POST /v2/models/{self._name}/infer")
            declared = version.runner.inputs[0]
            row = array_of(declared, [features])
            output = version.runner.outputs[0].name

            def done(answer: Arrays | BaseException) -> None:
                latency_s = perf_counter() - asked_s
                if isinstance(answer, BaseException):
                    exchange.send(500, detail(str(answer) or type(answer).__name__))
                    return
                prediction = np.asarray(answer[output]).ravel()
                if prediction.dtype.kind not in "biuf" or not np.isfinite(prediction).all():
                    exchange.send(500, detail("the model answered what is no finite number"))
                    return
                version.latencies_s.append(latency_s)
                said = PredictResponse(prediction.astype(float).tolist(), round(1e3 * latency_s, 2))
                exchange.send(200, _ENCODER.encode(said))

            exchange.on_gone(version.submit({declared.name: row}, done).cancel)
        except BadInput as refusal:
            problem = {"type": "value_error", "loc": ["body", "features"], "msg": refusal.message}
            exchange.send(422, detail([problem]))
        except UnknownModel:
            exchange.send(503, detail("the model is not loaded"), retry_after(NOT_READY_S))
        except Refused as refusal:
            exchange.send(refusal.status, detail(refusal.message), retry_after(refusal.retry_after_s))

    def health(self, exchange: Exchange) -> None:
        """Whether the model is there, and how long its last answers took."""
        latency_s = self._shelf.get(self._name).mean_latency_s if self._is_loaded else 0.0
        said = HealthResponse(
            "healthy" if self._is_loaded else "loading", self._is_loaded, round(1e3 * latency_s, 2)
        )
        exchange.send(200, _ENCODER.encode(said))

    def ready(self, exchange: Exchange) -> None:
        ready(exchange, is_ready=self._is_loaded)

    @property
    def _is_loaded(self) -> bool:
        return bool(self._shelf.versions_of(self._name))


def _problem(message: str) -> dict[str, object]:
    """What is wrong in a body, with its place as a list of keys and indices."""
    text, _, place = message.partition(" - at `$")
    keys = re.findall(r"[\w-]+", place)
    loc = ["body", *(int(key) if key.isdigit() else key for key in keys)]
    if "missing required field" in text:
        return {"type": "missing", "loc": [*loc, "features"], "msg": "Field required"}
    kind = "type_error" if place or text.startswith("Expected") else "json_invalid"
    return {"type": kind, "loc": loc, "msg": text}
