"""Datahall plans, simulates, runs and audits AI infrastructure.

Each verb of the command line is a function here with the same name and inputs; it returns an `Answer`.

>>> import datahall as dh
>>> print(dh.show_chip("h100-sxm", claim="peak.fp8=3958 TFLOP/s"))
Sparse: 3,958 TFLOP/s is with 2:4 sparsity; dense it is 1,979 TFLOP/s.
"""

from __future__ import annotations

from datahall.answers.verbs import BY_FUNCTION

__version__ = "0.1.0"

# name -> module it is loaded from on first use, and its name there where it differs
_HOMES = {
    "Answer": "answer",
    "Breakdown": "breakdown",
    "Catalog": "catalog",
    "DatahallError": "errors",
    "answer_schema": "report.wire:json_schema",
    "ask": "answers.ask:ask_document",
    "load_catalog": "catalog:load",
    "schema": "answers.schema",
}

__all__ = [*_HOMES, "__version__", *BY_FUNCTION]  # the table of verbs says which


def __getattr__(name: str) -> object:
    found: object
    if name in BY_FUNCTION:
        from datahall.answers.functions import function_of

        found = function_of(BY_FUNCTION[name])
    elif name in _HOMES:
        from importlib import import_module

        module, _, attribute = _HOMES[name].partition(":")
        found = getattr(import_module(f"datahall.{module}"), attribute or name)
    else:
        raise AttributeError(f"module 'datahall' has no attribute {name!r}")
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted(__all__)
