"""What the portal keeps and does: user labs are made, extended and taken away.

* `informers`: what is followed; `index`: what is known of each lab; `line`: which labs wait for their start.
* `lablets`: what is known of other lablets, such as those of a class; `listeners`: who waits for news.
* `choices`: the menu and the quotas; `locks`: which replica writes for which user.
* `requests`: the verbs of the API; `effects`: what is written, a package.
* `reconciler`: one turn of a lab; `keeper`: what no event announces; `instructors`: those of a class work in its labs.
"""
