"""The portal: it makes a lab for a user on request, shows it, extends it and takes it away.

A user lab is one lablet Pod in a namespace of its own. Kubernetes' objects are the record: no replica knows more than
another, and none is asked twice.

* `informers`: what is followed; `index`: what is known of each lab; `line`: which labs wait for their start.
* `lablets`: what is known of other lablets, such as those of a class; `listeners`: who waits for news.
* `choices`: the menu and the quotas.
* `locks`: which replica writes for which user; `effects`: what is written, a package.
* `requests`: the verbs of the page; `page`: its routes and streams; `site`: what people see in a browser (packages).
* `reconciler`: one turn of a lab; `keeper`: what no event announces; `instructors`: those of a class work in its labs.
* `origin`: whether a request comes from a page of the site itself.
* `parts`: the parts of the process; `process`: connect, listen, run, stop.
"""
