"""Claims: which lablet has which lab, ports and session on a worker. They are the only authority.

* `claim`: one row; `document`: all rows, as the ConfigMap of a worker; `podrows`: which rows of ports are whose.
* `table`: the rows in memory, with what they hold; `resting`: ports that rest after a mux led to them.
* `merge`: combine our rows with those that another writer left; `fitting`: which rows are written when not all fit.
"""
