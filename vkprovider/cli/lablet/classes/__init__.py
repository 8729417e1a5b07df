"""A whole class at once: `kubectl lablet define`, `assign --from-file`, `configs -l`, `collect -l`.

* `define`: a definition of a file; `owned`: whose it is, and where its topology is.
* `doctor`: what is wrong in the class's namespace.
* `giving`: each learner of a list gets a lablet.
* `sources`: a file that a command line names.
* `work`: what the learners have left; `grades`: their grades.
"""
