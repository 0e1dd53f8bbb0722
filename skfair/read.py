"""Read and check the arguments of ``fit`` and of prediction: rows, groups, weights and strata.

Estimators with the parameter ``sensitive`` call these functions:

- :func:`read_rows` in ``fit``. It returns the rows. In ``reading`` it returns the attributes with
  which later rows are read, and the fit stores these in the estimator: ``groups_``,
  ``model_features_``, scikit-learn's ``n_features_in_`` and ``feature_names_in_``, and private
  ones.
- :func:`read_features` for the X of new rows, and :func:`read_groups` for their groups.
- :func:`read_part` and :func:`read_part_groups` in ``partial_fit``, for later parts of a stream.

In this file the *model* is the part that learns from X. Its columns are the columns of X without
the sensitive ones, unless ``Sensitive(keep=True)``. The second half of ``read_rows`` warns about
columns that a user would hardly pass on purpose (``_warn_of_columns``).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn import config_context
from sklearn.base import is_classifier
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import (
    _check_y,
    _get_feature_names,
    _num_features,
    _num_samples,
    check_array,
    check_consistent_length,
    check_X_y,
    column_or_1d,
    validate_data,
)

from skfair._typing import ColumnLike, ColumnsLike, FloatArray, IntArray, MatrixLike
from skfair.base import SensitiveFeaturesMixin
from skfair.exceptions import MissingGroupsWarning, RepeatedRowsWarning
from skfair.groups.attributes import check_aligned, check_alignment, read_columns, take_rows
from skfair.groups.encoding import GroupEncoding, encode_groups, one_group
from skfair.groups.foreign_tables import native_table
from skfair.groups.named_columns import (
    column_positions,
    dropped_columns,
    keep_columns,
    take_columns,
)
from skfair.groups.probabilities import GroupProbabilities, read_probabilities
from skfair.groups.row_units import RowUnits, read_units
from skfair.groups.sensitive import Sensitive
from skfair.groups.strata import read_strata
from skfair.groups.telling_columns import (
    MOST_KINDS,
    attribute_columns,
    index_columns,
    names_people,
    said_people_of,
    warn_of_group_columns,
)
from skfair.groups.training_data import TrainingData
from skfair.utils.dask_collections import align, is_lazy, meta_of
from skfair.utils.factorize import factorize, factorized_or_none
from skfair.utils.partitioned_rows import PartitionedRows, check_part
from skfair.utils.row_hash import row_draws
from skfair.utils.text import listed, listed_in
from skfair.utils.validation import check_labels, check_weights
from skfair.utils.warn import hidden, is_unwanted, warn_user

# Fits of fewer rows get no warnings about columns, because two columns may have the same values by
# chance (with a probability of a millionth for 20 draws of two values). In larger fits this many
# rows are compared first, and all rows only if these agree.
_FEWEST_COMPARED = 20
# The check_params with which estimators that fit a model of their own call read_rows and
# read_features.
ROW_CHECKS: dict[str, Any] = {
    "accept_sparse": "csr",
    "dtype": [np.float64, np.float32],
    "order": "C",
}


class _Columns(NamedTuple):
    """The arguments of ``fit`` that have an entry for each row; None if not passed.

    :func:`read_rows` makes it of the arguments. ``_read_in_memory`` or ``_read_partitions``
    replaces X by the columns of the model, and adds groups and strata that are columns of X.
    """

    X: Any
    y: Any
    sensitive_features: Any
    control_features: Any
    sample_weight: Any
    units: Any


def read_rows(
    estimator: SensitiveFeaturesMixin,
    X: MatrixLike,
    y: ColumnLike | None = None,
    *,
    sensitive_features: ColumnsLike | None = None,
    control_features: ColumnsLike | None = None,
    sample_weight: ColumnLike | None = None,
    units: ColumnLike | None = None,  # the unit of each row
    supervised: bool = True,  # whether y is checked, and compared with the columns
    needs_groups: bool = True,  # whether there is a warning if there are not two groups
    **check_params: Any,  # options of scikit-learn's checks of X and y, such as ROW_CHECKS
) -> TrainingData:
    """Return all rows that ``fit`` got, checked: in memory, or in partitions if X is in Dask.

    With ``skip_check_array=True``, only the numbers of rows of X and y are compared, because an
    estimator inside this one will check the rest.
    """
    passed = _Columns(X, y, sensitive_features, control_features, sample_weight, units)
    is_parted = is_lazy(*passed[:-1])  # all but units, which raise if they are lazy
    _refuse_clashes(estimator, passed, is_parted)
    read = _read_partitions if estimator._takes_partitions and is_parted else _read_in_memory
    used, rows = read(estimator, passed, supervised, check_params)
    n_samples = _num_samples(rows.X)
    weights = None if rows.sample_weight is None else check_weights(rows.sample_weight, n_samples)
    if weights is not None and supervised and is_classifier(estimator):
        _check_weighted(rows.y, weights)
    strata = None
    if rows.control_features is not None:
        strata = read_strata(rows.control_features, n_samples=n_samples)
    together = None if units is None else _read_units(estimator, units, n_samples)
    if needs_groups and rows.sensitive_features is None:
        _warn_without_groups(estimator)
    groups = _encode_groups(estimator, n_samples, rows.sensitive_features)
    data = TrainingData.of(rows.X, rows.y, weights, groups, strata, together)
    data.groups.warn_small()
    if needs_groups and not estimator._takes_caps:  # others warn when they know their constraints
        data.groups.warn_single()
    if supervised and n_samples >= _FEWEST_COMPARED:
        index = index_columns(X, y, sensitive_features)
        _warn_of_columns(estimator, rows, used["model_features_"], groups, index)
    n_units = None if together is None else together.n_units
    n_without = 0 if data.groups.has_group is None else int((~data.groups.has_group).sum())
    of_groups = {
        "groups_": np.array(data.groups.names, dtype=object),
        "_group_levels": data.groups.levels,
        "_n_rows": (n_samples, n_units, n_without),
    }
    return replace(data, reading=used | of_groups)


def _check_weighted(y: Any, weights: FloatArray) -> None:
    """Raise if all rows of a class have weight 0, which would leave a fit of the other classes."""
    codes, levels = factorize(np.asarray(y))
    empty = [
        levels[i] for i in np.flatnonzero(np.bincount(codes[codes >= 0], weights[codes >= 0]) == 0)
    ]
    if empty:
        raise ValueError(
            f"All rows with y={listed(empty)} have sample_weight 0, so the fit would learn nothing "
            "of this class. Give them a weight, or drop these rows."
        )


def _refuse_clashes(estimator: SensitiveFeaturesMixin, passed: _Columns, is_parted: bool) -> None:
    """Raise if the arguments of ``fit`` contradict ``sensitive`` of the estimator."""
    asked = estimator._sensitive
    if asked.missing == "loss" and (is_parted or not estimator._learns_without_group):
        raise ValueError(
            f"{type(estimator).__name__} does not take Sensitive(missing='loss'), or not with Dask "
            "collections. Drop the rows without a group, and leave missing= out."
        )
    _check_columns("sensitive_features", passed.sensitive_features, asked.columns)
    _check_columns("control_features", passed.control_features, asked.control_features)


def _read_in_memory(
    estimator: SensitiveFeaturesMixin,
    passed: _Columns,
    supervised: bool,
    check_params: dict[str, Any],  # parameters of scikit-learn's checks of X and y
) -> tuple[dict[str, Any], _Columns]:
    """Return the columns that the model uses, see ``columns_of_model``, and the rows, checked.

    X of the rows has only these columns. Groups and strata from columns of X are in the fields for
    groups and strata.
    """
    X, asked = passed.X, estimator._sensitive
    refuse_lazy(estimator, *passed)
    check_aligned(**{name: own for name, own in passed._asdict().items() if name != "y"})
    _refuse_equal_names(X)
    used = columns_of_model(X, asked, _get_feature_names(X))  # raises for names that are not texts
    inside = {}
    if asked.columns is not None:
        inside["sensitive_features"] = take_columns(X, asked.columns)
    of_model = X if asked.columns is None else keep_columns(X, used["_model_positions"])
    of_model, y = _check_rows(estimator, of_model, passed.y, supervised, check_params)
    if asked.control_features is not None:
        inside["control_features"] = take_columns(X, asked.control_features, "control_features")
    return used, passed._replace(X=of_model, y=y, **inside)


def _refuse_equal_names(X: Any) -> None:
    """Raise if two columns of a frame have the same name, of which sklearn's error says little."""
    counts = Counter(X.columns) if hasattr(X, "iloc") and hasattr(X, "columns") else {}
    repeated = [name for name, count in counts.items() if count > 1]
    if repeated:
        raise ValueError(
            f"X has several columns with the name {listed(repeated)}. Give each column a name of "
            "its own, or keep the first ones: X.loc[:, ~X.columns.duplicated()]."
        )


def _read_partitions(
    estimator: SensitiveFeaturesMixin,
    passed: _Columns,
    supervised: bool,
    check_params: dict[str, Any],  # parameters of scikit-learn's checks of X
) -> tuple[dict[str, Any], _Columns]:
    """Do the same as ``_read_in_memory`` for Dask collections.

    X stays in its partitions, as :class:`PartitionedRows`. All other columns come to this process.
    """
    X, columns = passed.X, passed._asdict()
    del columns["X"], columns["units"]
    if not is_lazy(X):
        raise TypeError(
            f"X is a {type(X).__name__}, but y, sensitive_features or sample_weight is a Dask "
            "collection. Pass X as one too, or compute() the others."
        )
    meta, asked = meta_of(X), estimator._sensitive
    used = columns_of_model(meta, asked, _get_feature_names(meta))
    inside = {"sensitive_features": asked.columns, "control_features": asked.control_features}
    names, positions = used["model_features_"], used["_model_positions"]
    # Probabilities are in memory already.
    read = {k: own for k, own in columns.items() if isinstance(own, GroupProbabilities)}
    aligned = align(X=X, **{k: own for k, own in columns.items() if k not in read})
    checked = aligned.then(_check_block, positions, inside, names, check_params).hold()
    sizes, dtypes, beside = zip(*checked.collect(_narrow), strict=True)
    filled = np.flatnonzero(sizes)
    if not filled.size:
        raise ValueError("X has no rows.")
    dtype = np.result_type(*(dtypes[i] for i in filled))
    rows = PartitionedRows(checked.then(itemgetter(0)).pack(), sizes, dtype, len(names))
    for name in columns.keys() - read.keys():
        read[name] = _stacked([beside[i].get(name) for i in filled])
    if supervised:
        read["y"] = _check_y(read["y"], estimator=estimator)
    return used, passed._replace(X=rows, **read)


def _check_block(
    block: dict[str, Any],
    positions: Any,
    inside: dict[str, Any],
    names: Any,
    check_params: dict[str, Any],
) -> tuple[Any, dict[str, Any]]:
    """Check the X of a partition; return it, and the other columns by name.

    ``positions`` are the columns that the model uses, None for all, and ``names`` their names.
    ``inside`` has the columns of X that hold groups and strata, None if they were passed instead.
    """
    X, beside = block["X"], {name: own for name, own in block.items() if name != "X"}
    for name, own in inside.items():
        if own is not None:
            beside[name] = take_columns(X, own)
    if "y" in beside and X.shape[0]:
        check_labels(beside["y"], "y")  # checked here, so that the error names the partition
    X = X if positions is None else keep_columns(X, positions)
    return check_part(X, names, check_params), beside


def _narrow(part: tuple[Any, dict[str, Any]]) -> tuple[int, Any, dict[str, Any]]:
    """Return what is sent of a checked partition: number of rows, dtype, other columns."""
    X, beside = part
    return X.shape[0], getattr(X, "dtype", object), beside


def _stacked(parts: list[Any]) -> Any:
    """Concatenate a column of all partitions, or a dict of columns; None if it was not passed."""
    first = parts[0]
    if first is None:
        return None
    if isinstance(first, Mapping):
        return {name: _stacked([part[name] for part in parts]) for name in first}
    if not hasattr(first, "iloc"):
        return np.concatenate(parts)
    from dask.dataframe.dispatch import concat  # unites categories, too

    return concat(parts)


def _warn_of_columns(
    estimator: SensitiveFeaturesMixin,
    rows: _Columns,
    names: NDArray[Any],  # names of the columns of X
    groups: GroupEncoding | GroupProbabilities,
    index: Iterable[tuple[Any, Any]],  # name and values of each level of an index with names
) -> None:
    """Warn if columns tell the target or the group, or if people seem to have several rows.

    Columns that tell the group only matter for models that may not use it. Repeated people only
    matter for certificates, which treat each row as another person.
    """
    y, is_certified = np.asarray(rows.y), getattr(estimator, "certificate", None) is not None
    _warn_of_target(y, rows.X, names, groups)
    is_aware = estimator._sensitive.keep or getattr(estimator, "group_aware", False)
    if estimator._names_group_columns and rows.sensitive_features is not None and not is_aware:
        warn_of_group_columns(rows.X, rows.sensitive_features, names)
    if is_certified and rows.units is None:
        _warn_of_repeats(y, rows.X, names, groups, rows.sensitive_features, index)


def _warn_of_target(
    y: NDArray[Any], rows: Any, names: NDArray[Any], groups: GroupEncoding | GroupProbabilities
) -> None:
    """Warn if the groups, or a column of X, are the target itself.

    Values may be coded differently: columns agree if equal values of one have equal values in the
    other, in the same order of levels.
    """
    head, columns = y[:_FEWEST_COMPARED], []
    if hasattr(rows, "columns"):
        columns = [(name, rows[name]) for name in rows.columns]
    elif isinstance(rows, np.ndarray) and rows.ndim == 2:
        # Only columns whose first numbers equal those of y are compared, which saves time.
        is_near = (rows[: head.size] == head[:, None]).all(axis=0)
        columns = [(names[j], rows[:, j]) for j in np.flatnonzero(is_near)]
    said = [
        (f"The column {name!s} of X tells the target y exactly. Drop it.", v) for name, v in columns
    ]
    if isinstance(groups, GroupEncoding):
        advice = "sensitive_features are the same as the target y. Pass the attribute instead."
        said += [(advice, codes) for codes in groups.codes]
    first, (codes, levels) = factorize(head).codes, factorize(y)
    for message, values in said if len(levels) > 1 else ():
        begun = factorized_or_none(values[: head.size])
        if begun is not None and np.array_equal(begun.codes, first):
            whole = factorized_or_none(values)
            if whole is not None and np.array_equal(whole.codes, codes):
                warn_user(message)


def _read_units(
    estimator: SensitiveFeaturesMixin, units: ColumnLike, n_samples: int
) -> RowUnits | None:
    """Return which rows belong together; raise if the fit has neither certificate nor folds.

    Otherwise units have no effect, and the user would think that they have one.
    """
    is_certified = getattr(estimator, "certificate", None) is not None
    if not (is_certified or getattr(estimator, "_has_folds", False)):
        raise ValueError(
            "units= is not read here, because certificate is None, and the fit has no folds. Leave "
            "it out, or where metadata routing passes it on, call set_fit_request(units=False). "
            "Sensitive attributes are passed as sensitive_features=."
        )
    return read_units(units, n_samples)


def _warn_of_repeats(
    y: NDArray[Any],
    rows: Any,
    names: NDArray[Any],  # names of the columns of the rows
    groups: GroupEncoding | GroupProbabilities,
    sensitive_features: ColumnsLike | None,
    index: Iterable[tuple[Any, Any]] = (),
) -> None:
    """Warn if people seem to have several rows, because a certificate would then not be valid.

    There are three signs: a column, or an index, whose name identifies people has repeated values;
    a column of X has repeated values, and rows with the same value are always of the same group
    (``names_people``); or most rows have a twin in X, y and group.
    """
    if isinstance(rows, PartitionedRows) or is_unwanted(RepeatedRowsWarning):
        return
    n_rows, seen, columns = len(y), [], attribute_columns(sensitive_features)
    n_attributes = len(columns)
    if not sparse.issparse(rows):
        columns += [(str(names[j]), _safe_indexing(rows, j, axis=1)) for j in range(len(names))]
    columns += [(str(name), np.asarray(values)) for name, values in index]
    known = np.transpose(getattr(groups, "codes", [np.zeros(n_rows)]))
    # Columns of floats are mostly measurements, without repeats. A sample shows this fast: if each
    # person had two rows, about eight pairs in the sample would have the same value.
    some = np.unique(np.random.RandomState(0).randint(0, n_rows, int(4 * n_rows**0.5)))
    for place, (name, values) in enumerate(columns):
        if getattr(getattr(values, "dtype", None), "kind", "O") == "f":
            sampled = _safe_indexing(values, some)
            if np.unique(sampled).size == some.size:
                continue
        said = said_people_of(name, values)
        if said:
            seen.append(said)
            continue
        factorized = factorized_or_none(values)
        if factorized is None or not MOST_KINDS < len(factorized.levels) <= n_rows / 2:
            continue
        if place >= n_attributes and names_people(factorized.codes, known):
            seen.append(
                f"the column {name} has {len(factorized.levels):,} values in {n_rows:,} rows, and "
                "rows of the same value are of the same group"
            )
    # The sum of three hashes (of X, y and groups) is equal for twins, and differs for other rows.
    hashes = [row_draws(part, None, k) for k, part in enumerate((rows, y[:, None], known))]
    _, first, counts = np.unique(sum(hashes), return_index=True, return_counts=True)
    n_repeated = int(counts[counts > 1].sum())
    if n_repeated > n_rows / 2 and _tell_apart(rows, y, first):
        seen.append(f"{n_repeated:,} of {n_rows:,} rows have a twin in X, y and group")
    if seen:
        warn_user(
            f"Rows look as if people repeat ({listed_in(seen)}). The certificate takes every "
            "row for another person, and is too sure where that is wrong: pass units=, the person "
            "of each row. If all rows are different people, ignore this warning.",
            RepeatedRowsWarning,
        )


def _tell_apart(rows: Any, y: NDArray[Any], chosen: IntArray) -> bool:
    """Return whether a single column has many values, so that twins are not just chance.

    ``chosen`` has one row of each set of twins. If no column has different values in at least half
    of these rows, all columns are coarse, and two people may have the same values in all of them.
    For sparse rows, and lists of texts, the result is True without a check.
    """
    if sparse.issparse(rows) or len(getattr(rows, "shape", ())) != 2:
        return True
    for column in [y, *(_safe_indexing(rows, j, axis=1) for j in range(rows.shape[1]))]:
        factorized = factorized_or_none(_safe_indexing(column, chosen))
        if factorized and len(factorized.levels) > max(chosen.size / 2, MOST_KINDS):
            return True
    return False


def columns_of_model(
    table: MatrixLike, asked: Sensitive, names: NDArray[Any] | None
) -> dict[str, Any]:
    """Return attributes about the columns of a table and those that the model uses.

    The estimator stores them: ``feature_names_in_`` (unless ``names`` is None), ``n_features_in_``
    (unless X has no columns), ``model_features_``, the names or positions of the columns that the
    model uses, and ``_model_positions``. The last one is None if the model uses all columns because
    X has no sensitive ones.
    """
    used: dict[str, Any] = {} if names is None else {"feature_names_in_": names}
    with suppress(TypeError, LookupError):  # lists of texts have no columns, empty ones no rows
        used["n_features_in_"] = _num_features(table)
    features = np.arange(used.get("n_features_in_", 0)) if names is None else names
    positions = None
    if asked.columns is not None:
        positions = np.arange(len(features))
        if not asked.keep:
            positions = np.setdiff1d(positions, column_positions(table, asked.columns))
        if not positions.size:
            raise ValueError(
                "X has only sensitive columns, which are kept out of the model: no feature is left "
                "to learn from. Sensitive(..., keep=True) passes them on."
            )
        features = features[positions]
    return used | {"_model_positions": positions, "model_features_": features}


def _check_rows(
    estimator: SensitiveFeaturesMixin,
    X: Any,
    y: ColumnLike | None,
    supervised: bool,
    check_params: dict[str, Any],
) -> tuple[Any, Any]:
    """Return X (the columns of the model) and y, checked; y is only checked if ``supervised``."""
    if check_params.get("skip_check_array"):
        check_consistent_length(X, y)
        return X, y
    if supervised:
        X, y = check_X_y(X, y, estimator=estimator, **check_params)
        return X, y
    return check_array(X, estimator=estimator, input_name="X", **check_params), y


def _encode_groups(
    estimator: SensitiveFeaturesMixin, n_samples: int, passed: ColumnsLike | None
) -> GroupEncoding | GroupProbabilities:
    """Return the groups that were passed; if ``passed`` is None, all rows are one group.

    With ``Sensitive(missing="loss")``, rows without a value of each attribute have no group.
    """
    asked = estimator._sensitive
    if passed is None:
        return one_group(n_samples)
    table = read_probabilities(estimator, asked, passed, n_samples)
    if table is not None or asked.missing == "raise":
        return table or encode_groups(
            passed, n_samples=n_samples, intersectional=asked.intersectional
        )
    columns = read_columns(passed, n_samples=n_samples)
    rows = np.flatnonzero(np.all([factorize(values).codes >= 0 for _, values in columns], axis=0))
    if not rows.size:
        raise ValueError("Each row has a missing value in sensitive_features. Pass some groups.")
    known = encode_groups(take_rows(passed, rows), intersectional=asked.intersectional)
    codes = np.full((known.n_attributes, n_samples), -1)
    codes[:, rows] = known.codes
    return GroupEncoding.of(codes, known.levels)


def refuse_lazy(estimator: SensitiveFeaturesMixin, *collections: Any) -> None:
    """Raise for Dask collections. Steps that need rows in memory call it."""
    if is_lazy(*collections):
        raise TypeError(
            f"{type(estimator).__name__} does not read Dask collections here. Pass rows in memory: "
            "all of them with .compute() if they fit, or a sample to fit and parts to predict."
        )


def read_features(estimator: SensitiveFeaturesMixin, X: MatrixLike, **check_params: Any) -> Any:
    """Return the columns of new rows that the model uses, checked.

    A table may lack the sensitive columns, because they may not be known at prediction. An
    estimator around another model takes a table with more columns, or in another order, if that
    model does.
    """
    if check_params.get("skip_check_array"):
        if _is_plain(estimator, X):
            return X
        X = _columns_by_name(estimator, native_table(X))
    refuse_lazy(estimator, X)
    X = native_table(X)
    with config_context(array_api_dispatch=False):
        if estimator._model_positions is None:
            rows = validate_data(estimator, X, reset=False, **check_params)
            return _with_names(estimator, rows, check_params)
        if not _lacks_groups(estimator, X):
            validate_data(estimator, X, reset=False, skip_check_array=True)
            X = keep_columns(X, estimator._model_positions)
        rows = _check_rows(estimator, X, None, False, check_params)[0]
        return _with_names(estimator, rows, check_params)


def _is_plain(estimator: SensitiveFeaturesMixin, X: Any) -> bool:
    """Whether X is an array with the columns of a fit without names, for another model to check.

    For one row, ``validate_data`` takes as long as some models.
    """
    has_names = hasattr(estimator, "feature_names_in_") or estimator._model_positions is not None
    is_array = type(X) is np.ndarray and X.ndim == 2 and len(X) > 0
    return is_array and not has_names and X.shape[1] == estimator.n_features_in_


def _with_names(estimator: SensitiveFeaturesMixin, rows: Any, check_params: dict[str, Any]) -> Any:
    """Return an array for estimators inside this one with the names of the columns of the fit.

    If the fit got names and the new rows have none, ``validate_data`` has warned already, and the
    models of all folds would do so again.
    """
    is_for_others = check_params.get("skip_check_array") and isinstance(rows, np.ndarray)
    if not is_for_others or rows.ndim != 2 or not hasattr(estimator, "feature_names_in_"):
        return rows
    import pandas as pd

    return pd.DataFrame(rows, columns=estimator.model_features_)


def read_part(
    estimator: SensitiveFeaturesMixin,
    X: MatrixLike,
    y: ColumnLike | None,
    sensitive_features: ColumnsLike | None,
    sample_weight: ColumnLike | None,
    **check_params: Any,
) -> TrainingData:
    """Return a later part of a stream, checked, in the groups of the first part."""
    groups = read_part_groups(estimator, X, sensitive_features)
    check_aligned(X=X, sample_weight=sample_weight)
    rows = read_features(estimator, X, **check_params)
    y = column_or_1d(y, warn=True)
    check_consistent_length(rows, y)
    return TrainingData(rows, y, check_weights(sample_weight, rows.shape[0]), groups)


def read_part_groups(
    estimator: SensitiveFeaturesMixin, X: MatrixLike, sensitive_features: ColumnsLike | None = None
) -> GroupEncoding:
    """Return the groups of a later part of a stream, numbered as those of the first part."""
    refuse_lazy(estimator, X, sensitive_features)
    codes, levels = read_groups(estimator, X, sensitive_features), estimator._group_levels
    if codes is None:
        if levels.attributes:
            raise ValueError(
                "partial_fit got no sensitive_features, but the first part of the stream had "
                "them. Pass the groups of every part."
            )
        codes = np.zeros((1, _num_samples(X)), np.int64)
    return GroupEncoding.of(codes, levels)


def read_groups(
    estimator: SensitiveFeaturesMixin,
    X: MatrixLike,
    sensitive_features: ColumnsLike | None = None,
    *,
    allow_unseen: bool = False,
) -> IntArray | None:
    """Return the group numbers of new rows, or None if their groups are not known.

    The groups are ``sensitive_features``, or if it is None, the columns of X that ``sensitive``
    names. Unseen and missing groups raise, or get the number -1 with ``allow_unseen``. With
    ``Sensitive(missing="loss")`` missing groups always get -1.
    """
    if sensitive_features is None:
        columns = estimator._sensitive.columns
        if columns is None:
            return None
        X = native_table(X)
        if _lacks_groups(estimator, X):
            raise ValueError(f"X has no column {listed(dropped_columns(estimator))}.")
        sensitive_features = take_columns(X, columns)
    n_samples = _num_samples(X)
    check_alignment(sensitive_features, X)
    allowed = allow_unseen, allow_unseen or estimator._sensitive.missing == "loss"
    name, remedy = type(estimator).__name__, ""
    if hasattr(estimator, "unseen"):
        remedy = f" {name}(unseen='overall') treats such rows by the mean over the groups."
    levels = estimator._group_levels
    codes: IntArray = levels.encode(sensitive_features, n_samples, *allowed, remedy)
    return codes


def _warn_without_groups(estimator: SensitiveFeaturesMixin) -> None:
    warn_user(
        f"{type(estimator).__name__} was fitted without sensitive_features, so no constraint that "
        "compares groups is active. Pass fit(..., sensitive_features=...) or set sensitive=, the "
        "names of columns of X.",
        MissingGroupsWarning,
    )


def _lacks_groups(estimator: SensitiveFeaturesMixin, X: MatrixLike) -> bool:
    """Whether X is a table that has exactly the columns of the model, without sensitive ones."""
    is_table = list(getattr(X, "columns", [])) == list(estimator.model_features_)
    return is_table and bool(dropped_columns(estimator))


def _columns_by_name(estimator: SensitiveFeaturesMixin, X: Any) -> Any:
    """Return the columns of ``fit`` if X has them among others or in another order, else X itself.

    X is returned as it is, too, if the model inside does not predict such a row. A pipeline that
    begins with a ``ColumnTransformer`` does.
    """
    given, names = list(getattr(X, "columns", [])), vars(estimator).get("feature_names_in_", [])
    if not len(names) or given == list(names):
        return X
    places = {name: j for j, name in enumerate(given)}
    known = [name for name in names if name in places]
    if given == known or not set(estimator.model_features_) <= places.keys():
        return X
    if len(places) < len(given) or not _num_samples(X):  # two columns have one name, or no rows
        return X
    models = getattr(estimator, "estimators_", None) or [vars(estimator)["estimator_"]]
    dropped = set(dropped_columns(estimator))
    row = _safe_indexing(keep_columns(X, [j for j, c in enumerate(given) if c not in dropped]), [0])
    try:
        with hidden("", Warning):
            models[0].predict(row)
    except Exception:  # the check of the columns that follows says what is wrong
        return X
    return keep_columns(X, [places[name] for name in known])


def _check_columns(argument: str, values: Any, columns: Any) -> None:
    """Raise if a name was passed instead of a column, or if the estimator names columns, too."""
    if isinstance(values, str):
        raise TypeError(
            f"{argument}={values!r} is a name. Pass the column itself, X[{values!r}], or give its "
            "name to the estimator, sensitive=."
        )
    if values is not None and columns is not None:
        raise ValueError(
            f"{argument} was passed to fit although sensitive= of the estimator says that X holds "
            f"them, in {columns!r}. Use one of the two."
        )
