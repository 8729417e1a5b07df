"""Several replicas of the provider: who has which worker, what each of them answers, and the ports that they give."""

REPLICAS = 3
FIRST, LAST = 10000, 10059
"""The outside ports of each worker."""
SECRET = "the-events-secret"
"""Of those who send session events."""
