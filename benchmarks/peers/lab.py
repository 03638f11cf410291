"""The lab's model server in its plain form: FastAPI and pydantic, one call of the model for each request.

It runs the ONNX file that ours runs, so that what is compared is the serving: `uvicorn lab:app`, the file in MODEL.
"""

from __future__ import annotations

import os
import time
from collections import deque

import numpy as np
import onnxruntime
from fastapi import FastAPI, HTTPException
from pydantic import BaseModel

app = FastAPI()
session = onnxruntime.InferenceSession(os.environ["MODEL"], providers=["CPUExecutionProvider"])
latencies_ms: deque[float] = deque(maxlen=100)


class Question(BaseModel):
    """A row."""

    features: list[float]


class Prediction(BaseModel):
    """What the model says of it."""

    prediction: list[float]
    latency_ms: float


@app.post("/predict", response_model=Prediction)
async def predict(question: Question) -> Prediction:
    """Run the model on the event loop, as the lab does."""
    start_s = time.time()
    try:
        (output,) = session.run(None, {"x": np.array([question.features], np.float32)})
    except Exception as error:
        raise HTTPException(status_code=500, detail=str(error)) from error
    latencies_ms.append(1e3 * (time.time() - start_s))
    return Prediction(prediction=output[0].tolist(), latency_ms=round(latencies_ms[-1], 2))
