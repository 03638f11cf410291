"""Topologies as arrays of endpoints, switches and directed links: trees, Clos, rails, tori, dragonflies, domains."""
