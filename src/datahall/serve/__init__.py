"""What runs: an endpoint that answers model requests, and all that stands in the way of one.

A request comes in by `http`, goes through `gateway`, is counted in `ledger` and answered by `upstreams`.
"""
