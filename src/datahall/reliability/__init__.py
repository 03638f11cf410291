"""What breaks and what survives it: how often parts of a cluster fail, what each takes down and for how long, spares,
silent corruption; checkpoints and recovery.  Knows nothing of money."""
