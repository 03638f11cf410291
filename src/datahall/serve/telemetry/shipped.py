"""A dashboard for Grafana and rules to be alerted by, as files to copy."""

from __future__ import annotations

from importlib.resources import files

DASHBOARD, ALERTS = "dashboard.json", "alerts.yml"


def shipped(name: str) -> str:
    """The text of one of them."""
    return files("datahall.serve.telemetry").joinpath("data", name).read_text(encoding="utf-8")
