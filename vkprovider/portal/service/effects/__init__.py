"""What is written for user labs; each write is guarded by the lock of the user, and may be repeated.

* `objects`: the objects of a user lab as they are sent to the API server.
* `records`: namespaces and Pods of user labs: made, taken, marked and deleted, each only as it was seen.
* `making`: how a lab is made: everything that stands in its namespace.
"""
