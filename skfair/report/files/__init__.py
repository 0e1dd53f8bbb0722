"""Rows in files and databases, as people hand them over who do not program.

The commands make a ``TableFile`` (``table_file.py``) and read it block by block, or let an engine
count the rows where they are (``databases.py``). Records read columns back by the same functions,
and ``exact_numbers.py`` makes sure that numbers are those that were counted. Numbers keep the unit
of the file: 55,5 % is read as 55.5.
"""
