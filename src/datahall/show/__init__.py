"""One question, answered from closed forms: each function here is a verb and returns an `Answer`.

They gather facts from the catalogue and figures from the rooms above, and say them in sentences and tables.
"""
