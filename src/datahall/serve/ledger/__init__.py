"""Who may ask, how much, and what it cost: keys, limits and budgets that reserve before and settle after.

The counters that refuse are those that headers, `keys list` and invoices show.  What is admitted is in a journal
before anything is sent upstream, and in SQLite within one group commit.
"""
