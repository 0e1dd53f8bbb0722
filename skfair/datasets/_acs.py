"""ACSIncome from a file of the American Community Survey, as the benchmark papers use it.

The Census Bureau's person files ("psam_p40.csv" is Oklahoma) hold one row per person and hundreds
of columns. Read are those of ACSIncome, of adults who work: older than 16, an income above 100
dollars, hours of work, and a weight.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from skfair.datasets._packing import pack_dataset

if TYPE_CHECKING:
    import pandas as pd

# Files of a folder that are read without an entry in its index, by the name of the data set.
PERSON_FILES = {"acs_income": "psam_p40.csv"}

_FEATURES = ["AGEP", "COW", "SCHL", "MAR", "OCCP", "POBP", "RELP", "WKHP", "SEX"]
_OTHERS = ["RAC1P", "PINCP", "PWGTP"]
_RICH = 50_000

_DESCR = """acs_income

Task: binary classification (income above 50,000 dollars).

Notes: adults with AGEP > 16, PINCP > 100, WKHP > 0 and PWGTP >= 1 of a person file of the American
Community Survey; the features of ACSIncome without RAC1P, which gives the groups: 'white' where it
is 1, 'other' elsewhere. The protocol of fairness_constrained_benchmark: Oklahoma, 2018, one year
(17,917 rows); 80% to train on, stratified by group; columns standardised on the training rows.

Original reference: Ding, Hardt, Miller and Schmidt 2021, "Retiring Adult"."""


def load_acs_income(file: Path) -> Any:
    """Return the Bunch of a person file."""
    frame = read_person_file(file)
    groups = frame["RAC1P"].eq(1).map({True: "white", False: "other"})
    return pack_dataset(
        data=frame[_FEATURES],
        target=frame["PINCP"].gt(_RICH).astype("int64"),
        sensitive=groups.to_frame("race_white"),
        frame=frame,
        descr=_DESCR,
        as_frame=True,
        return_X_y=False,
        dropped_columns=["RAC1P", "PWGTP"],
    )


def read_person_file(file: Path) -> "pd.DataFrame":
    """Read the columns and rows of ACSIncome; missing answers are -1."""
    import pandas as pd

    wanted = [*_FEATURES, *_OTHERS]
    if not file.is_file():
        raise FileNotFoundError(
            f"{str(file.parent)!r} does not hold {file.name!r}, a person file of the American "
            "Community Survey (2018, one year). Get it from the Census Bureau and put it there."
        )
    names = pd.read_csv(file, nrows=0).columns
    absent = [name for name in wanted if name not in names]
    if absent:
        raise ValueError(
            f"{file.name!r} lacks the columns {', '.join(absent)}. Use a file of 2018: later ones "
            "name columns differently."
        )
    frame = pd.read_csv(file, usecols=wanted)[wanted]
    is_adult = (frame["AGEP"] > 16) & (frame["PINCP"] > 100)
    is_used = is_adult & (frame["WKHP"] > 0) & (frame["PWGTP"] >= 1)
    return frame[is_used].fillna(-1).reset_index(drop=True)
