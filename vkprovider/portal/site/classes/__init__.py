"""A view of the site: the classes of an instructor.

* `routes`: the paths.
"""
