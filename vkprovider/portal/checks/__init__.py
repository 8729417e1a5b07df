"""What the doctor looks at of a portal; all but `gather` and `road` is pure.

* `gather`: reads the objects, and passes them to the checks.
* `doors`: what keeps people out: settings, the key of cookies, certificate, address, bindings, prefix of usernames.
* `road`: whether WebSockets come through to it at the addresses that people use.
* `offer`: what is offered: the menu, quotas, how long a lab is waited for.
* `benches`: workbenches: the policy, the hosts at which they are opened, and what stops fork bombs.
* `hub`: the JupyterHub that logs people in.
* `page`: the provider's page, which it asks what learners have left.
* `services`: Services that it asks: which, whether they answer, whether it may.
"""
