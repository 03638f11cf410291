"""The side that asks: a client of one server, and the connections that it keeps."""

from datahall.serve.http.client.client import Client
from datahall.serve.http.client.origin import Origin

__all__ = ["Client", "Origin"]
