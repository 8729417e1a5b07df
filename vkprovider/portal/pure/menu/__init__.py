"""The menu: which labs users may ask for.

* `versions`: versions of content, in the order of a menu.
* `menu`: images and sizes, from LabletDefinitions, and what a request gets.
* `prepulled`: which workers have the image definitions.
* `form`: what the form of a user offers.
"""
