"""The public tables of the fairness literature, downloaded from OpenML.

Every ``fetch_*`` function calls scikit-learn's ``fetch_openml`` (same cache, same folder) and
returns the same Bunch: features without identifiers and leaks, a target of 0 and 1, and a frame
of named sensitive attributes. What differs between the tables is in ``_openml_specs``.

The one idea: which answer is the positive one, which columns leak it and how a column of codes
becomes groups are decisions; they are taken once, and documented here.
"""

import os
from collections.abc import Callable
from typing import Any

from skfair.datasets._openml import fetch_table
from skfair.datasets._openml_specs import SPECS
from skfair.datasets._packing import checks
from skfair.utils.docs import documenter

_DataHome = str | os.PathLike[str] | None

_documented = documenter(
    {
        "data_home": """data_home : str, path-like or None, default=None
    Folder of the download cache; None takes scikit-learn's, ``~/scikit_learn_data``.""",
        "cache": """cache : bool, default=True
    Keep the download in ``data_home``; later calls then need no network.""",
        "return_X_y": """return_X_y : bool, default=False
    Return ``(data, target, sensitive_features)`` instead of the Bunch.""",
        "Returns": """dataset : Bunch
    ``data``, ``target`` (0 or 1), ``sensitive_features`` (one column per attribute),
    ``frame`` (the whole table), ``feature_names``,
    ``sensitive_names``, ``dropped_columns`` (columns of ``frame`` that are no features),
    ``DESCR``.""",
        "Raises": """ConnectionError
    When OpenML cannot be reached and ``data_home`` holds no copy.""",
    }
)
_validated = checks(
    {
        "data_home": [str, os.PathLike, None],
        "cache": ["boolean"],
        "return_X_y": ["boolean"],
    },
)


def _fetches(table: str) -> Callable[[Callable[[], None]], Callable[..., Any]]:
    """Make the function that fetches a table of one that has its name and docstring."""

    def fetcher(described: Callable[[], None]) -> Callable[..., Any]:
        def fetch(
            *,
            data_home: _DataHome = None,
            cache: bool = True,
            return_X_y: bool = False,
        ) -> Any:
            return fetch_table(SPECS[table], data_home, cache, return_X_y)

        fetch.__name__, fetch.__qualname__ = described.__name__, described.__qualname__
        fetch.__doc__ = described.__doc__
        return _validated(_documented(fetch))

    return fetcher


@_fetches("adult")
def fetch_adult() -> None:
    """Fetch Adult: predict whether a person earns more than 50 000 dollars a year.

    48 842 people of the 1994 US census survey, 14 features. The target is 1 for the label ``>50K``;
    the sensitive attributes are ``sex`` and ``race``. OpenML data set 1590.

    Notes
    -----
    ``fnlwgt`` is a survey weight; ``education`` and ``education-num`` say the same;
    ``relationship`` all but reveals the sex. workclass, occupation and native-country have
    missing values.

    Examples
    --------
    >>> from skfair.datasets import fetch_adult
    >>> dataset = fetch_adult()  # doctest: +SKIP
    >>> dataset.sensitive_names  # doctest: +SKIP
    ['sex', 'race']
    """


@_fetches("bank")
def fetch_bank() -> None:
    """Fetch Bank Marketing: predict whether a client takes a term deposit.

    45 211 phone calls of a Portuguese bank, 15 features. The target is 1 for a deposit; the
    sensitive attributes are ``age_25_60`` (is the age from 25 to 60: "25-60" or "other") and
    ``marital``. OpenML data set 1461.

    Notes
    -----
    OpenML calls the columns V1 to V16 and the classes 1 and 2; the columns get their original
    names here. ``duration``, the length of the call, is known only once the answer is, and is
    left out of ``data``. Rows are in order of date: shuffle before splitting.

    Examples
    --------
    >>> from skfair.datasets import fetch_bank
    >>> dataset = fetch_bank()  # doctest: +SKIP
    >>> dataset.sensitive_names  # doctest: +SKIP
    ['age_25_60', 'marital']
    """


@_fetches("compas")
def fetch_compas() -> None:
    """Fetch COMPAS: predict whether a defendant is charged again within two years.

    Defendants of Broward County, Florida, African-American or Caucasian. The target is 1 for a
    new charge, so the positive answer is the bad one; the sensitive attributes are ``race``
    and ``sex``. OpenML data set 42193.

    Notes
    -----
    ``sex`` keeps the codes 0 and 1 of the source, whose description does not explain them; the
    larger group is male. OpenML's copy is prepared (5 278 rows, words turned into 0/1 columns)
    and holds none of the columns recorded after the outcome.

    Examples
    --------
    >>> from skfair.datasets import fetch_compas
    >>> dataset = fetch_compas()  # doctest: +SKIP
    >>> dataset.sensitive_names  # doctest: +SKIP
    ['race', 'sex']
    """


@_fetches("german_credit")
def fetch_german_credit() -> None:
    """Fetch German Credit: predict whether an applicant is a good risk.

    1 000 applicants, 20 features. The target is 1 for the label ``good``; the sensitive
    attributes are ``sex`` (read from ``personal_status``) and ``age_over_25``. OpenML data set
    31.

    Notes
    -----
    The sex is part of ``personal_status``, which stays among the features: leave it out for a
    model that does not see the sex.

    Examples
    --------
    >>> from skfair.datasets import fetch_german_credit
    >>> dataset = fetch_german_credit()  # doctest: +SKIP
    >>> dataset.sensitive_names  # doctest: +SKIP
    ['sex', 'age_over_25']
    """


@_fetches("communities_crime")
def fetch_communities_crime() -> None:
    """Fetch Communities and Crime: predict whether violent crime is frequent.

    1 994 US communities, 122 features scaled to [0, 1]. The target is 1 when
    ``ViolentCrimesPerPop`` exceeds 0.28, its 70th percentile; the sensitive attributes say
    whether ``racepctblack`` and ``racePctWhite`` reach their medians (0.06 and 0.85). OpenML
    data set 315.

    Notes
    -----
    The threshold and the groups are rules of skfair; ``frame`` holds the numbers. 22 columns on
    the police are missing for most communities. state, county, community, communityname and
    fold are left out of ``data``.

    Examples
    --------
    >>> from skfair.datasets import fetch_communities_crime
    >>> dataset = fetch_communities_crime()  # doctest: +SKIP
    >>> dataset.sensitive_names  # doctest: +SKIP
    ['black_median', 'white_majority_q']
    """


@_fetches("acs_income")
def fetch_acs_income() -> None:
    """Fetch ACS Income: predict whether a person earns more than 50 000 dollars a year.

    1 664 500 people of the 2018 American Community Survey, 10 features: Adult made anew. The
    target is 1 when ``PINCP`` exceeds 50 000; the sensitive attributes are ``sex`` and
    ``race``, in words. OpenML data set 43141.

    Notes
    -----
    A large download. ``data`` keeps the codes of the survey (``SEX``, ``RAC1P``); the state
    ``ST`` is in ``frame`` only.

    Examples
    --------
    >>> from skfair.datasets import fetch_acs_income
    >>> dataset = fetch_acs_income()  # doctest: +SKIP
    >>> dataset.sensitive_names  # doctest: +SKIP
    ['sex', 'race']
    """
