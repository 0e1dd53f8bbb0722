"""Download one OpenML table and read it as its row in ``_openml_specs`` says.

Every ``fetch_*`` function calls ``fetch_table``, which downloads the table (by scikit-learn's
``fetch_openml``, so with its cache), finds the columns, and turns the target into 0 and 1 and the
sensitive columns into group names.

A table that does not have the expected columns and labels raises an error that names what is
missing, so that no data set has a wrong target.
"""

import os
from collections.abc import Hashable
from http.client import HTTPException
from typing import TYPE_CHECKING, Any
from urllib.error import URLError

import numpy as np
from sklearn.datasets import fetch_openml

from skfair.datasets._openml_specs import Attribute, Spec
from skfair.datasets._packing import pack_dataset

if TYPE_CHECKING:
    import pandas as pd


def fetch_table(
    spec: Spec, data_home: str | os.PathLike[str] | None, cache: bool, return_X_y: bool
) -> Any:
    """Return the Bunch or the triple of one table, see the ``fetch_*`` functions."""
    import pandas as pd

    try:
        result = fetch_openml(
            data_id=spec.data_id,
            data_home=None if data_home is None else os.fspath(data_home),
            cache=cache,
            as_frame=True,
        )
    except (OSError, HTTPException) as error:
        if not isinstance(error, URLError) and getattr(error, "filename", None) is not None:
            raise  # a problem with the cache folder, and the message names the file
        raise ConnectionError(
            f"OpenML data set {spec.data_id} ({spec.name!r}) could not be downloaded: {error!r}. "
            "Check the network connection, or pass as data_home a folder with a copy cached by "
            "an earlier call, or read a parquet file of it with skfair.datasets.load_local."
        ) from error
    frame = _with_names(result.frame, spec)
    target_name = _find(frame, spec.target, spec)
    # Columns that are used must exist (``_find`` raises), but columns to drop may be absent.
    unwanted = {_letters(name) for name in spec.dropped}
    dropped = [column for column in frame.columns if _letters(column) in unwanted]
    sensitive = {a.name: _groups(frame[_find(frame, a.column, spec)], a) for a in spec.sensitive}
    return pack_dataset(
        data=frame.drop(columns=[target_name, *dropped]),
        target=_binary(frame[target_name], spec),
        sensitive=pd.DataFrame(sensitive),
        frame=frame,
        DESCR=str(result.get("DESCR")),
        return_X_y=return_X_y,
        dropped_columns=dropped,
    )


def _with_names(frame: "pd.DataFrame", spec: Spec) -> "pd.DataFrame":
    """Rename columns V1, V2, ... to ``spec.columns``; other columns keep their names."""
    numbered = [f"V{i}" for i in range(1, len(spec.columns) + 1)]
    return frame.rename(columns=dict(zip(numbered, spec.columns, strict=True)))


def _find(frame: "pd.DataFrame", name: str, spec: Spec) -> Any:
    """Return the column called ``name``, regardless of case and punctuation."""
    wanted = _letters(name)
    for column in frame.columns:
        if _letters(column) == wanted:
            return column
    raise ValueError(
        f"OpenML data set {spec.data_id} ({spec.name!r}) has no column {name!r}; it has "
        f"{list(frame.columns)}. The table differs from the one skfair knows: use "
        "sklearn.datasets.fetch_openml and name the sensitive columns yourself."
    )


def _letters(name: Hashable) -> str:
    """Return the letters and digits of a name in lower case, by which columns are compared."""
    return "".join(filter(str.isalnum, str(name).lower()))


def _binary(column: "pd.Series", spec: Spec) -> "pd.Series":
    """Return 1 for the positive answer and 0 otherwise, see ``Spec.positive``."""
    import pandas as pd

    if not isinstance(spec.positive, str):
        return (pd.to_numeric(column) > spec.positive).astype(np.int64)
    labels = _in_words(column)
    if not (labels == spec.positive).any():
        raise ValueError(
            f"OpenML data set {spec.data_id} ({spec.name!r}): the target {column.name!r} never is "
            f"{spec.positive!r}; its labels are {sorted(labels.dropna().unique())}. The table "
            "differs from the one skfair knows: use sklearn.datasets.fetch_openml and binarise "
            "it yourself."
        )
    return (labels == spec.positive).astype(np.int64)


def _groups(column: "pd.Series", attribute: Attribute) -> "pd.Series":
    """Return the group name of every row, as ``Attribute`` describes it."""
    import pandas as pd

    if attribute.between is not None:
        low, high = attribute.between
        inside = pd.to_numeric(_in_words(column)).between(low, high)
        return inside.map(dict(zip((True, False), attribute.labels, strict=True)))
    words = _in_words(column)
    if attribute.codes is None:
        return words
    unknown = sorted(set(words.dropna()) - set(attribute.codes))
    if unknown:
        raise ValueError(
            f"Column {column.name!r} holds {unknown[0]!r}, which is no known code of "
            f"{attribute.name}: known are {list(attribute.codes)}. The table differs from the one "
            "skfair knows: use sklearn.datasets.fetch_openml and name the groups yourself."
        )
    return words.map(dict(attribute.codes))


def _in_words(column: "pd.Series") -> "pd.Series":
    """Return the values as text. 1, 1.0 and True become "1", because sources differ in these."""
    words = {value: _word(value) for value in column.dropna().unique()}
    return column.astype(object).map(words)


def _word(value: Any) -> str:
    is_whole = isinstance(value, bool | np.bool_) or (
        isinstance(value, float) and value.is_integer()
    )
    return str(int(value)) if is_whole else str(value)
