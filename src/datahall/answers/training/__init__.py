"""Training runs in words: plans, memory, simulated steps."""
