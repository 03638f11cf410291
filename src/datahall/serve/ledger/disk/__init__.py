"""The ledger on the disk: a journal that outlives the process, tables that outlive the power, the folder of both."""
