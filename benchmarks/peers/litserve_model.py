"""A model of the benchmark as LitServe runs one: `{"features": [...]}`, its batches as wide as ours.

It reads the annotations of its methods, which have to be types therefore, and no texts.
"""

import os
import sys
from typing import Any

import litserve
import models
import numpy as np


class Served(litserve.LitAPI):  # type: ignore[misc]  # of a package that is in its own environment
    """What is in MODEL."""

    def setup(self, device: str) -> None:
        """Open it."""
        del device
        self._predict = models.model(os.environ["MODEL"])

    def decode_request(self, request: dict[str, Any]) -> models.Rows:
        """A row of a body."""
        return np.asarray(request["features"], np.float32)

    def predict(self, x: models.Rows) -> models.Rows:
        """Run a batch."""
        return self._predict(x)

    def encode_response(self, output: models.Rows) -> dict[str, Any]:
        """A row as it is answered."""
        return {"prediction": output.tolist()}


if __name__ == "__main__":
    api = Served(max_batch_size=int(sys.argv[2]), batch_timeout=float(sys.argv[3]))
    server = litserve.LitServer(api, accelerator="cpu", workers_per_device=1, timeout=60)
    server.run(host="127.0.0.1", port=int(sys.argv[1]), generate_client_file=False, log_level="error")
