"""A plan as files that tools take: launch commands, manifests and jobs, each option checked against a stated release.

What a tool cannot be told is refused by name; nothing of a plan is left out without a word.
"""
