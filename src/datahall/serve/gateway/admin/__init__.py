"""What who runs a gateway asks of it, at an address of its own: keys, customers, usage, upstreams, its file anew."""
