"""The events of a cluster in order of time: jobs come, start, end, are stopped and begin again; compiled."""
