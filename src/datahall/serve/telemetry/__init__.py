"""What can be seen of requests while they are answered: metrics, traces and a log, none of which has a prompt in it.

Counting is an addition to a child that was bound before; all else is done in the background or when somebody looks.
"""
