"""`kubectl lablet list`.

* `listing`: the command and its table; `rows`: one lablet as a row; `following`: --watch.
"""
