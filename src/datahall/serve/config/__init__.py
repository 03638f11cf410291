"""What a gateway is told: a file `gateway.toml`, read whole and with every problem of it, apart from what serves."""

from datahall.serve.config.read import is_gateway, read_settings
from datahall.serve.config.settings import Settings

__all__ = ["Settings", "is_gateway", "read_settings"]
