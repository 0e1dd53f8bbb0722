"""The tables that are fetched from OpenML: one ``Spec`` per data set.

A ``Spec`` says where the table is, which column is the target and what counts as a positive answer,
which columns name the groups, and which columns must not be features. ``_openml.fetch_table`` reads
it. To add a data set, add an entry to ``SPECS`` and a ``fetch_*`` function with a docstring to
``fetchers.py``.

OpenML never uses an id twice. Ids and column names were written down without access to OpenML. So
``_openml`` finds columns regardless of case and punctuation, and raises a clear error if one is
absent.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Attribute:
    """A sensitive attribute: a column, and how its values become group names.

    With ``between`` the column is a number and the groups are the two ``labels``, inside and
    outside of the closed interval. With ``codes`` every value must be one of its keys. With
    neither, the values are the group names.
    """

    name: str
    column: str
    between: tuple[float, float] | None = None
    labels: tuple[str, str] = ("True", "False")
    codes: Mapping[str, str] | None = None


@dataclass(frozen=True)
class Spec:
    """One OpenML table; ``positive`` is a label, or a number that the target has to exceed."""

    data_id: int
    name: str
    target: str
    positive: str | float
    sensitive: tuple[Attribute, ...]
    # Columns that are not features: identifiers, survey design, or known only after the fact
    dropped: tuple[str, ...] = ()
    # The names of the columns in order, for a table that calls them V1, V2, ...
    columns: tuple[str, ...] = ()


_BANK_COLUMNS = (
    *("age", "job", "marital", "education", "default", "balance", "housing", "loan"),
    *("contact", "day", "month", "duration", "campaign", "pdays", "previous", "poutcome"),
)

_ACS_RACES = (
    "White alone",
    "Black or African American alone",
    "American Indian alone",
    "Alaska Native alone",
    "American Indian and Alaska Native, other",
    "Asian alone",
    "Native Hawaiian and Other Pacific Islander alone",
    "Some other race alone",
    "Two or more races",
)

SPECS = {
    "adult": Spec(
        data_id=1590,
        name="adult",
        target="class",
        positive=">50K",
        sensitive=(Attribute("sex", "sex"), Attribute("race", "race")),
    ),
    "bank": Spec(
        data_id=1461,
        name="bank-marketing",
        target="Class",
        # The classes are called 1 (no) and 2 (yes, a deposit was taken).
        positive="2",
        sensitive=(
            Attribute("age_25_60", "age", between=(25, 60), labels=("25-60", "other")),
            Attribute("marital", "marital"),
        ),
        # The length of the call is only known after the deposit was sold.
        dropped=("duration",),
        columns=_BANK_COLUMNS,
    ),
    "compas": Spec(
        data_id=42193,
        name="compas-two-years",
        target="twoyearrecid",
        positive="1",
        sensitive=(
            # The table has only these two groups, as two columns of 0 and 1.
            Attribute(
                "race",
                "race_African-American",
                between=(1, 1),
                labels=("African-American", "Caucasian"),
            ),
            Attribute("sex", "sex"),
        ),
    ),
    "german_credit": Spec(
        data_id=31,
        name="credit-g",
        target="class",
        positive="good",
        sensitive=(
            Attribute(
                "sex",
                "personal_status",
                codes={
                    "male single": "male",
                    "male div/sep": "male",
                    "male mar/wid": "male",
                    "female div/dep/mar": "female",
                    "female single": "female",
                },
            ),
            Attribute("age_over_25", "age", between=(26, math.inf), labels=("over 25", "up to 25")),
        ),
    ),
    "communities_crime": Spec(
        data_id=315,
        name="us_crime",
        target="ViolentCrimesPerPop",
        # 0.28 is the 70th percentile of the 1994 communities; 0.06 and 0.85 are medians.
        positive=0.28,
        sensitive=(
            Attribute(
                "black_median",
                "racepctblack",
                between=(0.06, math.inf),
                labels=("racepctblack >= median", "below"),
            ),
            Attribute(
                "white_majority_q",
                "racePctWhite",
                between=(0.85, math.inf),
                labels=("racePctWhite >= median", "below"),
            ),
        ),
        dropped=("state", "county", "community", "communityname", "fold"),
    ),
    "acs_income": Spec(
        data_id=43141,
        name="ACSIncome",
        target="PINCP",
        positive=50_000.0,
        sensitive=(
            Attribute("sex", "SEX", codes={"1": "Male", "2": "Female"}),
            Attribute(
                "race",
                "RAC1P",
                codes={str(code): race for code, race in enumerate(_ACS_RACES, start=1)},
            ),
        ),
        # The state is not a feature of the published task.
        dropped=("ST",),
    ),
}
