"""A model of the benchmark as MLServer runs one: the Open Inference Protocol, its batches as wide as ours."""

from __future__ import annotations

import os

import models
from mlserver import MLModel
from mlserver.codecs import NumpyCodec
from mlserver.types import InferenceRequest, InferenceResponse


class Served(MLModel):  # type: ignore[misc]  # of a package that is in its own environment
    """What is in MODEL."""

    async def load(self) -> bool:
        """Open it."""
        self._predict = models.model(os.environ["MODEL"])
        return True

    async def predict(self, payload: InferenceRequest) -> InferenceResponse:
        """Run a batch."""
        rows = NumpyCodec.decode_input(payload.inputs[0])
        return InferenceResponse(
            model_name=self.name, outputs=[NumpyCodec.encode_output("y", self._predict(rows))]
        )
