"""A view of the site: the classes of an instructor.

* `routes`: the paths of the view: the classes of an instructor, and one lablet of a class.
* `acting`: the forms by which an instructor asks many lablets, the requests, and the page that tells how each went.
* `classrooms`: the classes that somebody teaches: what they may do there, the rows of each, and what changes on its
  page.
* `handout`: where each learner of a class begins, as a table and as a file.
* `work`: the work of a class, as zip files, and its grades, as a table and as a file: of now, and of lablets that are
  gone.
* `zips`: a zip file that is sent while it is made: of a class no more is in memory than the work of one learner.
* `definitions`: a file that CML exports becomes a definition of the class, and is tried.
* `pools`: how large the pools of a class are, and one more of them.
* `guests`: with whom a learner's lablet is shared, to watch or to type.
* `wall`: the first console of each learner of a class, to watch.
* `giving`: a list of learners gets the lablets of a pool: the form of the class's page, and what became of each
  learner.
"""
