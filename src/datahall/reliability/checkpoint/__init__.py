"""Checkpoints: what one holds, how long each tier takes to write and to read it, and how often to write."""
