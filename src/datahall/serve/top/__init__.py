"""What a gateway does now: its metrics read twice, and the rates and latencies between the two."""
