"""The command line: commands made from the table of verbs, what was typed asked, and the answer delivered.

Nothing heavy is imported before it is needed; `datahall --help` loads click and nothing else.
"""
