"""A view of the site: the page of one lab, for its learner, and for those who teach.

* `routes`: the paths, and what may be asked of them.
* `topics`: labs as topics: what their pages show, and what changes on them by itself.
* `page`: the page itself, of a user lab or of a lablet of a class.
* `pieces`: the parts of the page that change, each rendered alone.
* `deeds`: what can be done with a lab, as buttons.
* `asked`: the form of the request for a lab.
"""
