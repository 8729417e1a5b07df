"""A view of the site: changes that reach open pages by themselves.

* `routes`: the paths.
"""
