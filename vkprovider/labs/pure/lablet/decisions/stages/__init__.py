"""The stages of a lablet, a module each: what to do next, and what to report meanwhile. None imports another.

* `claiming`: before there is a claim; `fresh`: before there is a lab; `unseen`: while the lab cannot be seen.
* `imported`, `booting`, `unclear`, `crashed`, `serving`: by the states of the devices; `unnoted`: notes come first.
* `paused`: stopped on request; `wiping`: wiped and started again; `renewing`: replaced by a lab of new content.
* `portless`: with ports that cannot be used.
* `closing`: collected and graded; `returning`: back to the pool; `ending`: taken down.
"""
