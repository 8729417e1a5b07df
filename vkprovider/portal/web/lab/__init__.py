"""A view of the site: the page of one lab, for its learner, and for those who teach.

* `routes`: the paths of the view: the page of a user's lab, and what may be asked of the lab.
* `topics`: labs as topics: what their pages show at first, and what changes on them by itself.
* `pieces`: the page of one lab and its parts that change: elements with ids, what can be done, the form to ask for it.
"""
