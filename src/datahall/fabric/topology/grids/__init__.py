"""Grids of chips: tori and meshes, pods of TPUs, HyperX, and how long their sides are."""
