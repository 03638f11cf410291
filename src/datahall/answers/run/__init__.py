"""What is asked of a run over weeks: its checkpoints, and what failures leave of it."""
