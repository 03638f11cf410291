"""Datahall plans, simulates, runs and audits AI infrastructure.

Each verb of the command line is a function here with the same name and arguments; it returns an `Answer`.

>>> import datahall as dh
>>> print(dh.show_chip("h100-sxm", claim="peak.fp8=3958 TFLOP/s"))
Sparse: 3,958 TFLOP/s is with 2:4 sparsity; dense it is 1,979 TFLOP/s.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datahall.answer import Answer
    from datahall.breakdown import Breakdown
    from datahall.catalog import Catalog
    from datahall.catalog import load as load_catalog
    from datahall.errors import DatahallError
    from datahall.show.chip import show_chip
    from datahall.show.collective import show_collective
    from datahall.show.fabric import show_fabric
    from datahall.show.hierarchy import show_hierarchy
    from datahall.show.listing import (
        catalog_chips,
        catalog_links,
        catalog_models,
        catalog_search,
        catalog_servers,
    )
    from datahall.show.memory import show_memory
    from datahall.show.model import show_model
    from datahall.show.price import catalog_api_prices, catalog_prices
    from datahall.show.roofline import show_roofline
    from datahall.show.serving_fit import show_fit
    from datahall.show.serving_plan import plan_serve
    from datahall.show.techniques import show_techniques
    from datahall.show.term import explain_term
    from datahall.show.training_plan import plan_train
    from datahall.show.verdict import catalog_add, check
    from datahall.simulate.fabric import simulate_fabric
    from datahall.simulate.serve import simulate_serve
    from datahall.simulate.train import simulate_train
    from datahall.validation.ledger import validate

__version__ = "0.1.0"

# name -> module it is loaded from on first use, and its name there where it differs
_HOMES = {
    "Answer": "answer",
    "Breakdown": "breakdown",
    "Catalog": "catalog",
    "load_catalog": "catalog:load",
    "DatahallError": "errors",
    "show_chip": "show.chip",
    "show_collective": "show.collective",
    "show_fabric": "show.fabric",
    "show_fit": "show.serving_fit",
    "show_memory": "show.memory",
    "show_model": "show.model",
    "plan_serve": "show.serving_plan",
    "plan_train": "show.training_plan",
    "show_techniques": "show.techniques",
    "simulate_serve": "simulate.serve",
    "show_roofline": "show.roofline",
    "show_hierarchy": "show.hierarchy",
    "catalog_chips": "show.listing",
    "catalog_models": "show.listing",
    "catalog_links": "show.listing",
    "catalog_servers": "show.listing",
    "catalog_search": "show.listing",
    "catalog_prices": "show.price",
    "catalog_api_prices": "show.price",
    "catalog_add": "show.verdict",
    "check": "show.verdict",
    "explain_term": "show.term",
    "simulate_fabric": "simulate.fabric",
    "simulate_train": "simulate.train",
    "validate": "validation.ledger",
}

__all__ = [
    "Answer",
    "Breakdown",
    "Catalog",
    "DatahallError",
    "__version__",
    "catalog_add",
    "catalog_api_prices",
    "catalog_chips",
    "catalog_links",
    "catalog_models",
    "catalog_prices",
    "catalog_search",
    "catalog_servers",
    "check",
    "explain_term",
    "load_catalog",
    "plan_serve",
    "plan_train",
    "show_chip",
    "show_collective",
    "show_fabric",
    "show_fit",
    "show_hierarchy",
    "show_memory",
    "show_model",
    "show_roofline",
    "show_techniques",
    "simulate_fabric",
    "simulate_serve",
    "simulate_train",
    "validate",
]


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'datahall' has no attribute {name!r}")
    from importlib import import_module

    module, _, attribute = home.partition(":")
    found: object = getattr(import_module(f"datahall.{module}"), attribute or name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted(__all__)
