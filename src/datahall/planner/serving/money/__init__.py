"""What a service costs, and which candidate costs the least."""
