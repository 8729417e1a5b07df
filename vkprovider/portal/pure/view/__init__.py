"""A lab as its learner sees it. Pure.

* `lab`: all that its page shows; `failures`: what is wrong; `progress`: what goes on; `picture`: its devices and links.
"""
