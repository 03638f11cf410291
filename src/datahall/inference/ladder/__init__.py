"""The ladder of serving: what an engine has taken away, techniques alone and together, and what changes the answers."""
