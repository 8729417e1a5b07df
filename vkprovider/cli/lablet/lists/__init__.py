"""`kubectl lablet list`.

* `listing`: the command and its table; `rows`: one lablet as a row; `following`: --watch.
* `standings`: the plain words for how a lablet stands; `words`: which of them a Pod's facts mean.
"""
