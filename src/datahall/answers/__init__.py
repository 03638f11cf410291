"""A question in, its answer out: the table of verbs, and by subject the functions that ask the rooms and word.

Nothing is computed here: figures, searches and simulations come from the rooms above.
"""
