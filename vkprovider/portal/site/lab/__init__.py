"""A view of the site: the page of one lab.

* `routes`: the paths.
"""
