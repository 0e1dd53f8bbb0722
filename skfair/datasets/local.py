"""Read data sets from a folder on your disk, with no network.

The folder holds parquet files and ``datasets.json``, an object with an entry for each data set. The
entry says which column is the target, which label is positive, which columns or rules define the
groups, and which columns are not features. ``load_local`` returns the same Bunch as
``make_loans`` and the ``fetch_*`` functions. A data set with an ``edges_file`` is a graph and comes
with its adjacency matrix.

So the meaning of columns is written once, next to the data, and not in every script.
"""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from skfair.datasets._packing import checks, pack_dataset
from skfair.utils.older import align_sparse

if TYPE_CHECKING:
    import pandas as pd

_Folder = str | os.PathLike[str] | None

_VARIABLE = "SKFAIR_DATA"
_INDEX = "datasets.json"


@checks(
    {
        "name": [str],
        "folder": [str, os.PathLike, None],
        "return_X_y": ["boolean"],
    },
)
def load_local(name: str, folder: _Folder = None, *, return_X_y: bool = False) -> Any:
    """Load one data set of a local folder.

    Parameters
    ----------
    name : str
        Name of the data set, as listed by :func:`local_datasets`.
    folder : str, path-like or None, default=None
        The folder with ``datasets.json``. If None, the environment variable ``SKFAIR_DATA`` is
        used. Rules in that file are evaluated by ``pandas.DataFrame.eval``, so load only folders
        whose origin you trust.
    return_X_y : bool, default=False
        If True, return ``(data, target, sensitive_features)`` instead of a Bunch, or ``(adjacency,
        target, sensitive_features)`` for a graph.

    Returns
    -------
    dataset : Bunch
        Dictionary-like object with the following attributes.

        data : DataFrame
            The features, which are all columns except the target, ``meta_columns`` and
            ``leak_columns``. It has no columns if the data set is a graph.
        target : Series or None
            The target, which is 1 if ``target_rule`` holds, or without such a rule, if the target
            column equals ``positive_label``. It is 0 for all other rows. If the data set has no
            target, it is None.
        sensitive_features : DataFrame
            The groups, with one column per sensitive attribute.
        frame : DataFrame
            The whole table as it is stored in the folder.
        feature_names, sensitive_names, dropped_columns : list of str
            The columns of ``data``, the columns of ``sensitive_features``, and the columns of
            ``frame`` that are neither features nor the target.
        adjacency : CSR matrix, only for a graph
            The adjacency matrix, which is symmetric, is 1 for an edge, and has an empty diagonal.
            Its type is float64.
        DESCR : str
            Text that describes the task, with notes, reference and licence.

    Raises
    ------
    FileNotFoundError
        If no folder is given, or if files are missing in it.
    ValueError
        If the folder has no data set of this name.
    ImportError
        If no reader of parquet files is installed.

    See Also
    --------
    local_datasets : List the names of the data sets in the folder.

    Notes
    -----
    An entry of ``datasets.json`` has the keys ``file`` and ``sensitive`` and, as needed,
    ``target``, ``positive_label``, ``target_rule``, ``meta_columns``, ``leak_columns``,
    ``edges_file`` (with the columns ``node_1`` and ``node_2``, row numbers of ``file``),
    ``task``, ``notes``, ``original_reference`` and ``licence``. A sensitive attribute has a
    ``name`` and either a ``column`` or a ``rule``; the groups of a rule are named by its
    ``labels``, an object with the keys "True" and "False".

    Examples
    --------
    >>> from skfair.datasets import load_local
    >>> adult = load_local("adult", "path/to/folder")  # doctest: +SKIP
    >>> adult.sensitive_names  # doctest: +SKIP
    ['sex', 'race', 'race_white']
    """
    import pandas as pd

    path, entries = _read_index(folder)
    if name not in entries:
        raise ValueError(
            f"There is no data set {name!r} in {str(path)!r}. It holds {', '.join(entries)}."
        )
    entry = _checked(entries[name], name)
    frame = _read_table(path / entry["file"])
    sensitive = {spec["name"]: _groups(frame, spec) for spec in entry["sensitive"]}
    dropped = [*(entry.get("meta_columns") or []), *(entry.get("leak_columns") or [])]
    for column in dropped:  # raises for a misspelt name, so that no leak stays a feature
        _column(frame, column)
    not_features = {*dropped, entry.get("target")}
    is_graph = "edges_file" in entry
    # The columns of a table of nodes only number and name the nodes, so they are not features.
    features = [] if is_graph else [c for c in frame.columns if c not in not_features]
    dataset = pack_dataset(
        data=frame[features],
        target=_target(frame, entry),
        sensitive=pd.DataFrame(sensitive, index=frame.index),
        frame=frame,
        DESCR=_description(name, entry),
        return_X_y=False,
        dropped_columns=dropped,
    )
    if is_graph:
        dataset.adjacency = _adjacency(_read_table(path / entry["edges_file"]), len(frame), name)
    if return_X_y:
        X = dataset.adjacency if is_graph else dataset.data
        return X, dataset.target, dataset.sensitive_features
    return dataset


@checks({"folder": [str, os.PathLike, None]})
def local_datasets(folder: _Folder = None) -> list[str]:
    """List the data sets of a local folder.

    Parameters
    ----------
    folder : str, path-like or None, default=None
        The folder with ``datasets.json``. If None, the environment variable ``SKFAIR_DATA`` is
        used.

    Returns
    -------
    names : list of str
        The names in the order of ``datasets.json``.

    See Also
    --------
    load_local : Load a data set of the folder.

    Examples
    --------
    >>> from skfair.datasets.local import local_datasets
    >>> local_datasets("path/to/folder")  # doctest: +SKIP
    ['adult', 'bank', 'compas']
    """
    return list(_read_index(folder)[1])


def _read_index(folder: _Folder) -> tuple[Path, dict[str, Any]]:
    """Return the folder and the entries of its datasets.json."""
    folder_name = os.environ.get(_VARIABLE) if folder is None else os.fspath(folder)
    source = f"the environment variable {_VARIABLE}" if folder is None else "folder"
    if not folder_name:
        raise FileNotFoundError(
            f"No folder with data sets: folder is {folder!r} and the environment variable "
            f"{_VARIABLE} is not set. Pass folder=, or set {_VARIABLE} to a folder that holds "
            f"{_INDEX} and the parquet files it names."
        )
    path, named = Path(folder_name), f"{source} names {folder_name!r}"
    if not (path / _INDEX).is_file():
        what = f"which holds no {_INDEX}" if path.is_dir() else "which is no folder"
        raise FileNotFoundError(
            f"{named}, {what}. Write one that describes its data sets (see "
            "skfair.datasets.load_local), or pass another folder."
        )
    try:
        entries = json.loads((path / _INDEX).read_text(encoding="utf-8"))
    except ValueError as error:  # the file is not JSON, or not UTF-8
        raise ValueError(f"{named}, whose {_INDEX} cannot be read: {error}.") from error
    if not isinstance(entries, dict):
        raise ValueError(
            f"{named}, whose {_INDEX} holds a {type(entries).__name__}. Write an object in braces "
            "that has an entry for each data set (see skfair.datasets.load_local)."
        )
    return path, entries


def _checked(entry: Any, name: str) -> Mapping[str, Any]:
    """Return the entry of a data set; raise if a key is missing that every entry must have."""
    specs = entry.get("sensitive") if isinstance(entry, dict) else None
    are_named = isinstance(specs, list) and all(
        isinstance(spec, dict) and "name" in spec and ("column" in spec or "rule" in spec)
        for spec in specs
    )
    if not are_named or "file" not in entry:
        raise ValueError(
            f"The entry {name!r} of {_INDEX} must have a 'file' and a list 'sensitive', each of it "
            "with a 'name' and a 'column' or a 'rule'. Add what is missing."
        )
    return dict(entry)


def _read_table(file: Path) -> "pd.DataFrame":
    """Read a parquet file; raise if it, or a library that reads it, is missing."""
    import pandas as pd

    if not file.is_file():
        raise FileNotFoundError(
            f"{_INDEX} names {file.name!r}, but {str(file.parent)!r} does not hold it. Put the "
            "file there, or correct the entry."
        )
    try:
        return pd.read_parquet(file)
    except ImportError as error:
        raise ImportError(
            f"Reading {file.name!r} takes a library for parquet files, and none is installed. "
            "Install pyarrow: pip install pyarrow."
        ) from error


def _target(frame: "pd.DataFrame", entry: Mapping[str, Any]) -> "pd.Series | None":
    """Return 1 for the positive answer and 0 otherwise, or None without a target."""
    if entry.get("target_rule"):
        positive = _holds(frame, entry["target_rule"])
    elif entry.get("target"):
        column, label = _column(frame, entry["target"]), entry.get("positive_label")
        # In columns with pandas.NA the comparison of a missing answer is NA, which counts as False.
        positive = (column == label).fillna(False)
        if not positive.any():
            levels = sorted(map(repr, column.dropna().unique()[:10].tolist()))
            raise ValueError(
                f"The target {entry['target']!r} never is positive_label={label!r}; its labels are "
                f"{', '.join(levels)}. Correct the entry of {_INDEX}."
            )
    else:
        return None
    target: pd.Series = positive.astype(np.int64).rename(entry.get("target"))
    return target


def _groups(frame: "pd.DataFrame", spec: Mapping[str, Any]) -> "pd.Series":
    """Return the group name of every row for one sensitive attribute."""
    if "column" in spec:
        column = _column(frame, spec["column"])
        words: pd.Series = column.astype(str).where(column.notna())
        return words
    names = spec.get("labels", {"True": spec["rule"], "False": "not"})
    if not isinstance(names, dict) or not {"True", "False"} <= set(names):
        raise ValueError(
            f"The labels of the attribute {spec['name']!r} in {_INDEX} are {names!r}. Name the "
            'groups as {"True": ..., "False": ...}.'
        )
    groups: pd.Series = _holds(frame, spec["rule"]).map(
        {True: names["True"], False: names["False"]}
    )
    return groups


def _column(frame: "pd.DataFrame", name: str) -> "pd.Series":
    """Return a column that an entry names."""
    if name not in frame.columns:
        raise ValueError(
            f"{_INDEX} names the column {name!r}, which is not in the file. Its columns are "
            f"{', '.join(map(str, frame.columns))}."
        )
    column: pd.Series = frame[name]
    return column


def _holds(frame: "pd.DataFrame", rule: str) -> "pd.Series":
    """Return for which rows a rule of the index is true; raise if it is not a valid rule."""
    import pandas as pd

    try:
        is_true: Any = frame.eval(rule, engine="python")
    except Exception as error:  # pandas raises many types, for names, syntax and dtypes
        raise ValueError(f"The rule {rule!r} of {_INDEX} cannot be evaluated: {error}.") from error
    if not (isinstance(is_true, pd.Series) and pd.api.types.is_bool_dtype(is_true)):
        raise ValueError(
            f"The rule {rule!r} of {_INDEX} is not true or false for each row. Write a comparison, "
            "such as 'age > 40'."
        )
    holds: pd.Series = is_true.fillna(False).astype(bool)
    return holds


def _adjacency(edges: "pd.DataFrame", n_nodes: int, name: str) -> Any:
    """Return the symmetric 0/1 matrix of an edge list; edges of a node to itself are left out."""
    ends = np.column_stack([_column(edges, end).to_numpy() for end in ("node_1", "node_2")])
    outside = (ends < 0) | (ends >= n_nodes)
    if outside.any():
        raise ValueError(
            f"The edges of {name!r} name the node {ends[outside][0]}, but there are {n_nodes} "
            f"nodes, numbered from 0 to {n_nodes - 1}. Number the nodes by their rows."
        )
    start, end = ends[ends[:, 0] != ends[:, 1]].T
    both = (np.concatenate([start, end]), np.concatenate([end, start]))
    adjacency = sp.csr_array((np.ones(len(both[0])), both), shape=(n_nodes, n_nodes))
    # Edges that are listed twice are summed, so all entries are set to 1.
    adjacency.sum_duplicates()
    adjacency.data[:] = 1.0
    return align_sparse(adjacency)


def _description(name: str, entry: Mapping[str, Any]) -> str:
    """Put the notes of an entry into one text."""
    parts = [name]
    for key in ("task", "notes", "original_reference", "licence"):
        if entry.get(key):
            parts.append(f"{key.replace('_', ' ').capitalize()}: {entry[key]}")
    meanings = [s["meaning"] for s in entry["sensitive"] if "meaning" in s]
    return "\n\n".join([*parts, *meanings])
