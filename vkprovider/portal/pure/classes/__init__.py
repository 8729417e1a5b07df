"""A class as its instructor sees it. Pure.

* `rows`: one lablet of a class; `grid`: the rows of a class, sorted and counted; `asked`: what is asked of many.
"""
