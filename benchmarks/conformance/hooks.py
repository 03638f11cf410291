"""Three of four names of models that schemathesis makes up are put right: what they meet is more than a 404."""

from __future__ import annotations

import os
from typing import Any

import schemathesis

MODEL = os.environ["SERVED_MODEL"]


@schemathesis.hook  # type: ignore[untyped-decorator]
def map_body(context: Any, body: Any) -> Any:  # noqa: ARG001
    return _put_right(body)


@schemathesis.hook  # type: ignore[untyped-decorator]
def map_path_parameters(context: Any, path_parameters: Any) -> Any:  # noqa: ARG001
    return _put_right(path_parameters)


def _put_right(values: Any) -> Any:
    if isinstance(values, dict) and isinstance(values.get("model"), str) and len(values["model"]) % 4:
        return {**values, "model": MODEL}
    return values
