"""A load generator: the requests that a simulation would play, sent to an endpoint, with when each token came.

Users who wait for their answers are a closed loop; requests at a rate are an open one, in which a request that is sent
late is measured from when it was due.
"""
