"""Less discriminatory alternatives: models with less disparity that are about as good.

Users call ``alternatives`` (``less_discriminatory.py``) with models that they have fitted, or
``search_alternatives`` (``search.py``), which fits the models itself and then calls the functions
of the first file. Both return ``Alternatives``, a page of :mod:`skfair.report.results`.
Disparities, accuracies and their differences are shares: 1% is 0.01.
"""
