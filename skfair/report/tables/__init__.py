"""From the rows of an audit to its tables, for audits, ``find_subgroups`` and pages of committees.

They call the files in this order:

1. ``options.py`` checks how an audit is made,
2. ``reading.py`` reads a :class:`skfair.Cohort`: it checks the columns, makes one of the tasks in
   ``tasks.py``, which says what is measured, and puts each row into a cell,
3. ``sums.py`` adds up the measures by cell, and ``scores.py`` the scores. After that, no row is
   needed, unless a metric of one's own reads rows,
4. ``small_groups.py`` decides which groups may be shown,
5. ``views.py`` computes the tables of rates and gaps. ``gaps.py`` has their intervals and p-values,
   and ``subgroups.py`` searches the intersections of attributes.

Rates are shares of the rows or people of a group, and their differences are not in points: 5% is
0.05. Means of numbers have the unit of the numbers.
"""
