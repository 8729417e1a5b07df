"""What learners leave behind, kept beyond the Pod.

* `leftovers`: the devices' configurations and the answers given in a session.
* `keeping`: how much is kept, per namespace and in total.
"""
