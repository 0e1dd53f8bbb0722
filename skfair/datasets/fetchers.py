"""The public tables of the fairness literature, downloaded from OpenML.

Every ``fetch_*`` function calls scikit-learn's ``fetch_openml`` (same cache, same folder) and
returns the same Bunch: features without identifiers and leaks, a target of 0 and 1, and a frame of
named sensitive attributes. The differences between the tables are listed in ``_openml_specs``.

Somebody has to decide which answer is the positive one, which columns leak it and how a column of
codes becomes groups. These decisions are made once, and documented here.

The functions below only have a name and a docstring. The decorator ``_fetches`` replaces each by a
function that downloads the table.
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
    Folder of the download cache. If None, the folder of scikit-learn, ``~/scikit_learn_data``, is
    used.""",
        "cache": """cache : bool, default=True
    Whether to keep the download in ``data_home``, so that later calls need no network.""",
        "return_X_y": """return_X_y : bool, default=False
    If True, return ``(data, target, sensitive_features)`` instead of a Bunch.""",
        "Returns": """dataset : Bunch
    Dictionary-like object with the features ``data``, the ``target`` (0 or 1), the
    ``sensitive_features`` (one column per attribute) and the whole table ``frame``. It also has
    ``feature_names``, ``sensitive_names``, ``dropped_columns`` (columns of ``frame`` that are
    neither features nor the target) and a description ``DESCR``.""",
        "Raises": """ConnectionError
    If OpenML cannot be reached and ``data_home`` holds no copy.""",
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
    """Replace a function by one that fetches a table of ``SPECS``, keeping name and docstring."""

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

    The table describes 48 842 people of the 1994 US census survey by 14 features. The target is 1
    for the label ``>50K``. The sensitive attributes are ``sex`` and ``race``. It is OpenML data set
    1590.

    See Also
    --------
    make_loans : Loan applications that need no download.
    load_local : Loads a data set from a folder.

    Notes
    -----
    ``fnlwgt`` is a survey weight. ``education`` and ``education-num`` contain the same information,
    and ``relationship`` almost reveals the sex. The columns workclass, occupation and
    native-country have missing values.

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

    The table describes 45 211 phone calls of a Portuguese bank by 15 features. The target is 1 for
    a deposit. The sensitive attributes are ``age_25_60``, which is "25-60" for an age from 25 to 60
    and "other" otherwise, and ``marital``. It is OpenML data set 1461.

    See Also
    --------
    make_loans : Loan applications that need no download.
    load_local : Loads a data set from a folder.

    Notes
    -----
    OpenML names the columns V1 to V16 and the classes 1 and 2. The columns have their original
    names here. ``duration``, the length of the call, is known only after the call, and is left out
    of ``data``. The rows are sorted by date, so shuffle them before splitting.

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

    The table describes 5 278 African-American and Caucasian defendants of Broward County, Florida.
    The target is 1 for a new charge, so the positive class is the unfavourable one. The sensitive
    attributes are ``race`` and ``sex``. It is OpenML data set 42193.

    See Also
    --------
    make_loans : Loan applications that need no download.
    load_local : Loads a data set from a folder.

    Notes
    -----
    ``sex`` keeps the codes 0 and 1 of the source, whose description does not explain them. The
    larger group is male. The copy at OpenML is preprocessed: words are encoded as 0/1 columns, and
    columns that were recorded after the outcome are left out.

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

    The table describes 1 000 applicants by 20 features. The target is 1 for the label ``good``. The
    sensitive attributes are ``sex``, which is read from ``personal_status``, and ``age_over_25``.
    It is OpenML data set 31.

    See Also
    --------
    make_loans : Loan applications that need no download.
    load_local : Loads a data set from a folder.

    Notes
    -----
    The sex is part of ``personal_status``, which stays among the features. Drop this column for a
    model that must not see the sex.

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

    The table describes 1 994 US communities by 122 features, which are scaled to [0, 1]. The target
    is 1 if ``ViolentCrimesPerPop`` exceeds 0.28, its 70th percentile. The sensitive attributes tell
    whether ``racepctblack`` and ``racePctWhite`` reach their medians (0.06 and 0.85). It is OpenML
    data set 315.

    See Also
    --------
    make_loans : Loan applications that need no download.
    load_local : Loads a data set from a folder.

    Notes
    -----
    The threshold and the groups were chosen for skfair, and ``frame`` holds the original numbers.
    22 columns on the police are missing for most communities. The columns state, county, community,
    communityname and fold are left out of ``data``.

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

    The table describes 1 664 500 people of the 2018 American Community Survey by 10 features. It
    was proposed as a replacement of Adult. The target is 1 if ``PINCP`` exceeds 50 000. The
    sensitive attributes are ``sex`` and ``race``, in words. It is OpenML data set 43141.

    See Also
    --------
    make_loans : Loan applications that need no download.
    load_local : Loads a data set from a folder.

    Notes
    -----
    The download is large. ``data`` keeps the codes of the survey (``SEX``, ``RAC1P``). The state
    ``ST`` is only in ``frame``.

    Examples
    --------
    >>> from skfair.datasets import fetch_acs_income
    >>> dataset = fetch_acs_income()  # doctest: +SKIP
    >>> dataset.sensitive_names  # doctest: +SKIP
    ['sex', 'race']
    """
