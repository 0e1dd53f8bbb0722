"""What was found, in fields, checks, sentences, pictures and pages. All products share this room.

1. ``result.py`` has the base classes: a page, the tables of any audit, those of predictions. Their
   methods call the other files when a user asks for something.
2. ``checks.py`` says whether a limit is kept, for ``Audit.check`` and the page of a committee.
3. ``sentences.py`` makes the verdicts, and ``evidence.py`` says what a rule of law asks for and
   which number answers it. Their words are in ``skfair/report/words.toml`` and ``law.toml``.
4. ``pages.py`` fills the templates in ``templates``, with coordinates from ``pictures.py``.

Fields hold shares, such as 0.05, and sentences and pages say 5%. Pictures are in pixels.
``schema.json`` is the form of ``Audit.to_dict``.
"""
