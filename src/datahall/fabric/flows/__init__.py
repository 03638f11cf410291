"""Flows through a fabric, event by event: jobs in, fair rates, failures and congestion, the time of each flow out."""
