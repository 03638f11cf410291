"""Pages of a gateway that has answered what a test tells of."""

from __future__ import annotations

from collections.abc import Iterable

from datahall.serve.telemetry.metrics import Read
from datahall.serve.telemetry.telemetry import Telemetry
from datahall.serve.telemetry.told import Told

CUSTOMER_LEFT = {"budget_usd": 5.0, "budget_left_usd": 4.5, "tokens_left": 900.0}
BEGAN_S = 1_795_000_000.0


class Pages:
    """The metrics of one gateway, and its lines."""

    def __init__(self, began_s: float = BEGAN_S) -> None:
        self.num_waiting = 0
        self.telemetry = Telemetry(
            readings=(
                Read("process_start_time_seconds", "-", lambda: [((), began_s)]),
                Read("process_resident_memory_bytes", "-", lambda: [((), 4e7)]),
                Read("datahall_open_requests", "-", lambda: [((), 5)]),
                Read("datahall_ledger_unwritten", "-", lambda: [((), 0)]),
                Read("datahall_waiting_requests", "-", lambda: [(("small",), self.num_waiting)], ("model",)),
                *(
                    Read(
                        f"datahall_customer_{name}", "-", lambda left=left: [(("acme",), left)], ("customer",)
                    )
                    for name, left in CUSTOMER_LEFT.items()
                ),
                Read("datahall_upstream_ready", "-", lambda: [(("u",), 1)], ("upstream",)),
                Read("datahall_upstream_open_requests", "-", lambda: [(("u",), 3)], ("upstream",)),
            )
        )

    def after(self, some: Iterable[Told]) -> str:
        """The page once these requests are over too."""
        for one in some:
            self.telemetry.tell(one)
        return self.telemetry.instruments.exposed().decode()
