"""The way of each flow: paths of every topology, equal-cost choice among them, and what collisions cost."""
