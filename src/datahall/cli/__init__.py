"""The command line: one thin file per verb, which reads options, asks a question and delivers the answer.

Nothing heavy is imported before it is needed; `datahall --help` loads click and nothing else.
"""
