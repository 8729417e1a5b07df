"""The portal: it makes a lab for a user on request, shows it, extends it and takes it away.

A user lab is one lablet Pod in a namespace of its own. Kubernetes' objects are the record: no replica knows more than
another, and none is asked twice.

* `pure`: user labs: one lablet for one user, at the request of that user.
* `service`: what the portal keeps and does: user labs are made, extended and taken away.
* `api`: the REST API of the portal: the routes by which a user has a lab, and a hub or an instructor looks after labs.
* `web`: the site: what the portal shows people in a browser.
* `ssh`: consoles by ssh: with a link as password, as an own port.
* `settings`: settings of the portal: user labs, who may have them, and their times.
* `checks`: what the doctor looks at of a portal.
* `process`: the process of one replica of the portal: its list of parts; connect, listen, run, stop.
"""
