"""Verbs about what is known: chips, models, terms, and the catalogue that has them."""
