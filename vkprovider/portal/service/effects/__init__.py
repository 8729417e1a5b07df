"""What is written for user labs; each write is guarded by the lock of the user, and may be repeated.

* `objects`: the objects of a user lab as they are sent. Pure.
* `records`: the Namespace of a user lab, which is its record.
* `contents`: what stands in it beside the Pod.
* `pods`: its Pod; `making`: all that is made in the namespace, in order.
"""
