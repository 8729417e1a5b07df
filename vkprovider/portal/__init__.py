"""The portal: it makes a lab for a user on request, shows it, extends it and takes it away.

A user lab is one lablet Pod in a namespace of its own. Kubernetes' objects are the record: no replica knows more than
another, and none is asked twice.

* `pure`: what is decided: the record of a lab, its next step, the menu, what people see.
* `service`: what is followed, kept and written.
* `api`: the REST API by which users, hubs and instructors ask; `web`: what people see in a browser.
* `origin`: whether a request comes from a page of the site itself; `settings`: its settings.
* `parts`: the parts of the process; `process`: connect, listen, run, stop.
"""
