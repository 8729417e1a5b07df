"""The composition root of the provider: its parts, wired, and its HTTP page.

* `main`: the process; `tables`: the tables that an admin may give in files.
* `provider`: the provider, as a list of parts; `base`: what its `parts` share, such as `informers` and `queues`.
* `metrics`: what is counted; `page`: where the page listens.
* `kubelet`: the kubelet API of our Nodes; `tunnels`: carriers by the settings.

It is the only place that knows all packages of the provider.
"""
