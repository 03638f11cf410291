"""Every input that a person can give, declared once: its unit, its bounds, its default, its words, the names it completes.

Flags, files, keywords, JSON, schema, follow-up commands and the places that errors name are made from these declarations.
"""
