"""A view of the site: the page of one lab, for its learner, and for those who teach.

* `routes`: the page of a lab: what it shows at first, what changes on it by itself, and what may be asked of the lab.
* `given`: the page of a lablet of a class for the learner who has it, and what they may ask of it.
* `pieces`: the page of one lab and its parts that change: elements with ids, what can be done, the form to ask for it.
"""
