"""What a model server answers a client instead of a prediction: what was wrong, and whose turn it is."""

from __future__ import annotations

from typing import Any

import msgspec


class PredictRefusal(msgspec.Struct, frozen=True):
    """An error, as FastAPI's servers write it."""

    detail: str | list[Any]


class InferenceRefusal(msgspec.Struct, frozen=True):
    """An error, as the Open Inference Protocol writes it."""

    error: str


class Refused(Exception):
    """A request that is not run; `status` is HTTP's, and `retry_after_s` says when to come again."""

    def __init__(self, status: int, message: str, *, retry_after_s: float = 0.0) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.retry_after_s = retry_after_s


class BadInput(Refused):
    """A request that no waiting makes right."""

    def __init__(self, message: str) -> None:
        super().__init__(422, message)


class UnknownModel(Refused):
    """A model, or a version of it, that is not loaded here."""

    def __init__(self, name: str, version: str = "") -> None:
        of = f" has no version {version}" if version else " is not loaded"
        super().__init__(404, f"model {name}{of}")
