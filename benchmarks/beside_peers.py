"""`make bench-peers`: servers of others and ours in one run, the model server's and the gateway's alike."""

from __future__ import annotations

import os

from gateway import gateway_lines
from model_server import model_server_lines
from table import printed


def main() -> None:
    """Measure both and print one table."""
    print(f"load {os.getloadavg()[0]:.1f}\n")
    print(printed([*model_server_lines(), *gateway_lines()]))
    print(f"\nload at the end {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
