"""The compiled loop of the flow simulation: its state, how links are shared, how rounds follow, and its events."""
