"""A view of the site: the classes of an instructor.

* `routes`: the paths of the view: the classes of an instructor.
* `acting`: the forms by which an instructor asks many lablets, the requests, and the page that tells how each went.
* `classrooms`: which classes somebody teaches, what they may do there, and the rows of each.
* `lablets`: the page of one lablet of a class, for its instructors.
* `grid`: the elements of a class's page that change: how many stand how, what holds labs up, and the rows.
* `giving`: a list of learners gets the lablets of a pool: the form of the class's page, and what became of each
  learner.
"""
