"""The ledger on the disk: a journal that outlives the process, tables that have all of it, and the way back."""
