"""What it costs: chips rented, reserved, on spot or owned, tokens by API, training runs, services, growth.

Closed forms over facts of the catalogue; a price that nobody published is listed as not priced, never taken as nothing.
"""

from __future__ import annotations
