"""Facts with source and date: chips, links, servers, models, cloud offers and API prices.

Shipped as TOML and CSV under `data/`; a user's own entries lie over them.
"""

from datahall.catalog.catalog import Catalog, load

__all__ = ["Catalog", "load"]
