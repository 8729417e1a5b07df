"""A class as its instructor sees it: one row for each lablet, and lists of learners.

* `rows`: one lablet as a row; `grid`: the rows sorted, filtered, counted and grouped.
* `sheet`: texts as CSV for a spreadsheet; `roster`: a list of learners, as an instructor has it.
* `asked`: how far an instructor extends a lablet, and what cannot be done with it.
"""
