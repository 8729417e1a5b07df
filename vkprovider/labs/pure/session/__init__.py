"""Sessions of the Lab Delivery System (LDS).

* `delivery`: what the LDS says of a session; `inbox`: session events, folded into one row per session.
* `deployments`: which deployment of the LDS serves a new session.
"""
