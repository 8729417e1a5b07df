"""A view of the site: the classes of an instructor.

* `routes`: the paths; `acts`: the forms, and what became of each lablet.
* `classrooms`: which classes somebody teaches, and the rows of each; `rights`: what somebody may do in a class.
* `lablets`: the page of one lablet.
* `grid`: the elements of a class's page that change; `acting`: one request to many lablets;
  `giving`: a list of learners gets the lablets of a pool.
"""
