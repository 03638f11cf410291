"""A simulated fleet that answers: the events of the inference simulation, each when its time has come, over HTTP.

No second model of timing: the compiled loop is played up to now, and what it says of tokens goes to who waits for them.
"""
