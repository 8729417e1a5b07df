"""The provider: every CML worker becomes a Node, every lablet a Pod.

* `pure`: what it decides: functions of (state, facts, now).
* `controllers`: reconcilers, one package per noun.
* `lds`, `content`: shells of the Lab Delivery System and of content packages.
* `kubelet`: the kubelet API of its Nodes; `http`: its HTTP page.
* `settings`: its settings; `checks`: what the doctor looks at; `wiring`: its list of parts.
"""
