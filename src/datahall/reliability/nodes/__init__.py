"""Nodes that are away and nodes that are left: how likely enough work, how many spares are enough, how long none is
there."""
