"""Fair decisions in ONNX graphs: expected utility minus offsets, as in ``prediction.py``.

:mod:`skfair.export` calls :func:`decisions` with the outputs of :func:`models_inside` and with the
numbers of the groups and strata that :func:`levels_inside` names. Groups of new rows may be known,
or estimated by models of groups.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import FixedThresholdClassifier, TunedThresholdClassifierCV

from skfair._typing import FloatArray
from skfair.estimators.decisions.prediction import Decider
from skfair.estimators.group_probabilities import MOST_PAIRS, GroupModels
from skfair.estimators.probability_corrections import LEAST, ProbabilityCorrections
from skfair.groups.attributes import CONTROL, SENSITIVE
from skfair.groups.levels import GroupLevels
from skfair.utils.onnx_groups import MISSING, UNSEEN
from skfair.utils.onnx_kinds import onnx_classes
from skfair.utils.rounding import TINY

# The labels of rows whose group or stratum is refused: graphs cannot raise
REFUSED_TEXT, REFUSED_NUMBER = "unknown group", np.iinfo(np.int64).min
# The smallest value whose logarithm is taken to break ties
_LEAST_VALUE = np.finfo(np.float64).tiny


def models_inside(model: BaseEstimator) -> list[Any]:
    """Return the models inside fair decisions; raise if these cannot be converted.

    The models of the classes come first. If offsets depend on the group and the group is estimated,
    models of the groups of each attribute follow. :func:`decisions` reads their outputs in this
    order.
    """
    if model._decider.mixture is not None:
        raise ValueError(
            f"A group of this {type(model).__name__} has several thresholds, and a hash of the row "
            "chooses between them. Graphs have no such hash: fit with group_aware=True for one "
            "threshold in each group."
        )
    return [*model.estimators_, *chain.from_iterable(_group_models(model._decider))]


def _group_models(decider: Decider) -> list[list[Any]]:
    """Return the models of the groups of each attribute that decisions use."""
    groups = decider.group_models
    return groups.models if groups is not None and decider.offsets.any() else []


def levels_inside(model: BaseEstimator) -> dict[str, GroupLevels]:
    """Return the groups, and the strata, that ``predict`` reads of new rows, by argument."""
    levels, decider = {}, model._decider
    if model.is_group_aware_ and decider.groups.n_groups > 1:
        levels[SENSITIVE.argument] = decider.groups
    if decider.strata is not None:
        levels[CONTROL.argument] = decider.strata
    return levels


def decisions(model: BaseEstimator, inputs: list[Any], ops: Any) -> tuple[Any, ...]:
    """Convert fair decisions: the class with the largest expected utility minus offset.

    ``inputs`` are the probabilities that the models of :func:`models_inside` return, and then the
    numbers of groups and strata, (n_samples, n_attributes) and (n_samples, 1).
    """
    of_models, decider = iter(inputs), model._decider
    chances = _mean_chances(model.estimators_, model._ordered_classes, of_models, ops)
    estimates = [[next(of_models) for _ in of_attribute] for of_attribute in _group_models(decider)]
    codes = dict(zip(levels_inside(model), of_models, strict=True))
    groups, strata = codes.get(SENSITIVE.argument), codes.get(CONTROL.argument)
    of_attributes = [] if groups is None else _columns(groups, decider.groups.offsets.size - 1, ops)
    if decider.corrections is not None:
        chances = _corrected(decider.corrections, chances, of_attributes, decider, ops)
    margins = ops("MatMul", chances, np.float64(decider.utility))
    if decider.tie_weight:
        logs = ops("Log", ops("Max", margins, np.full(1, _LEAST_VALUE)))
        term = ops("Mul", ops("Mul", margins, logs), np.full(1, decider.tie_weight))
        margins = ops("Add", margins, term)
    if decider.offsets.any():
        own = chances, of_attributes, estimates, strata
        margins = ops("Sub", margins, _expected_offsets(decider, *own, ops))
    number = ops("ArgMax", margins, axis=1, keepdims=0)
    if model._sign < 0:
        margins = ops("Gather", margins, np.array([1, 0]), axis=1)
    classes = onnx_classes(model._ordered_classes)
    is_refused = _refused(model, codes, ops)
    if is_refused is not None:
        refused = REFUSED_TEXT if classes.dtype.kind == "U" else REFUSED_NUMBER
        if refused in classes:
            raise ValueError(
                f"The class {refused!r} is the label of graphs for rows of an unknown group. Fit "
                "with another name of this class, or with unseen='overall'."
            )
        margins = ops("Where", is_refused, np.full((1, 1), np.nan), margins)
        of_rows = ops("Reshape", is_refused, np.array([-1]))
        number = ops("Where", of_rows, np.array([classes.size]), number)
        classes = np.append(classes, refused)
    return ops("Gather", classes, number, axis=0), margins


def _columns(codes: Any, n_columns: int, ops: Any) -> list[Any]:
    """Return the columns (n_samples, 1) of a matrix of integers."""
    return [ops("Gather", codes, np.array([j]), axis=1) for j in range(n_columns)]


def _refused(model: BaseEstimator, codes: dict[str, Any], ops: Any) -> Any:
    """Return which rows ``predict`` raises for (n_samples, 1), None if it never raises."""
    refused = []
    for argument, own in codes.items():
        largest = MISSING  # the largest number of a group that is refused
        if argument == SENSITIVE.argument:
            if model.unseen == "overall":
                continue
            if model._sensitive.missing == "loss":  # a missing group is allowed, another one is not
                largest = UNSEEN
        n_columns = model._decider.groups.offsets.size - 1 if argument == SENSITIVE.argument else 1
        refused += _columns(ops("LessOrEqual", own, np.array([largest])), n_columns, ops)
    return reduce(lambda a, b: ops("Or", a, b), refused) if refused else None


def _corrected(
    corrections: ProbabilityCorrections,
    chances: Any,
    groups: list[Any],  # numbers of the groups of each attribute
    decider: Decider,
    ops: Any,
) -> Any:
    """Return the corrected probabilities, of all rows or by the group of the first attribute."""
    logs = ops("Log", ops("Max", chances, np.full(1, LEAST)))
    if not corrections.is_by_group:
        slopes, offsets = corrections.slopes[0], corrections.offsets[0]
        return ops("Softmax", ops("Add", ops("MatMul", logs, slopes), offsets), axis=1)
    # Groups without a correction, and unknown groups, keep their probabilities.
    n_groups, n_classes = decider.groups.n_groups, corrections.offsets.shape[1]
    slopes = np.zeros((n_groups + 1, n_classes, n_classes))
    offsets, is_corrected = np.zeros((n_groups + 1, n_classes)), np.zeros((n_groups + 1, 1), bool)
    slopes[corrections.groups] = corrections.slopes
    offsets[corrections.groups], is_corrected[corrections.groups] = corrections.offsets, True
    place = _place(groups[0], n_groups, ops)
    values = ops("Add", _by_row(logs, slopes, place, ops), ops("Gather", offsets, place, axis=0))
    corrected = ops("Softmax", values, axis=1)
    return ops("Where", ops("Gather", is_corrected, place, axis=0), corrected, chances)


def _place(codes: Any, of_unknown: int, ops: Any) -> Any:
    """Return numbers of groups (n_samples,), with ``of_unknown`` in place of unknown ones."""
    is_unknown = ops("Less", codes, np.array([0]))
    return ops("Reshape", ops("Where", is_unknown, np.array([of_unknown]), codes), np.array([-1]))


def _by_row(values: Any, tables: FloatArray, place: Any, ops: Any) -> Any:
    """Return the product of each row with the table at its place.

    ``values`` has the shape (n_samples, n), ``tables`` (n_places, n, n_columns), and ``place``
    (n_samples,).
    """
    shape = np.array([-1, 1, tables.shape[1]])
    product = ops("MatMul", ops("Reshape", values, shape), ops("Gather", tables, place, axis=0))
    return ops("Reshape", product, np.array([-1, tables.shape[2]]))


def _expected_offsets(
    decider: Decider,
    chances: Any,  # probabilities of the classes
    groups: list[Any],  # numbers of the groups of each attribute; empty if groups are not known
    estimates: list[list[Any]],  # outputs of the models of the groups of each attribute
    strata: Any,  # numbers of the strata; None without strata
    ops: Any,
) -> Any:
    """Return the expected offset of each decision, over the groups and classes of the row."""
    offsets, models = decider.offsets, decider.group_models
    n_groups, n_strata, n_classes = offsets.shape[:3]
    stratum = None if strata is None else _place(strata, 0, ops)
    if models is not None:
        joint = [
            _joint_chances(models, k, chances, iter(own), ops) for k, own in enumerate(estimates)
        ]
        together = ops("Concat", *joint, axis=1) if len(joint) > 1 else joint[0]
        tables = offsets.swapaxes(0, 1).reshape(n_strata, -1, n_classes)
        return _by_stratum(together, tables, stratum, ops)
    if not groups:  # no offset depends on the group
        of_anybody = offsets[decider.groups.offsets[:-1]].sum(axis=0)
        return _by_stratum(chances, of_anybody, stratum, ops)
    # A row whose group is unknown in any attribute gets the mean offset over the groups. The first
    # attribute adds it, and the other attributes add 0.
    mean = np.tensordot(decider.marginals, offsets, axes=1)
    tables = np.concatenate([offsets, mean[None], np.zeros_like(mean)[None]])
    tables = tables.reshape(-1, n_classes, n_classes)
    is_unknown = reduce(
        lambda a, b: ops("Or", a, b), (ops("Less", code, np.array([0])) for code in groups)
    )
    parts = []
    for number, code in enumerate(groups):
        of_unknown = np.array([n_groups + (number > 0)])
        place = ops("Reshape", ops("Where", is_unknown, of_unknown, code), np.array([-1]))
        if stratum is not None:
            place = ops("Add", ops("Mul", place, np.array([n_strata])), stratum)
        parts.append(_by_row(chances, tables, place, ops))
    return reduce(lambda a, b: ops("Add", a, b), parts)


def _by_stratum(values: Any, tables: FloatArray, stratum: Any, ops: Any) -> Any:
    """Return the product of each row with the table of its stratum."""
    if stratum is None:
        return ops("MatMul", values, tables[0])
    return _by_row(values, tables, stratum, ops)


def _joint_chances(
    groups: GroupModels, number: int, chances: Any, of_models: Iterator[Any], ops: Any
) -> Any:
    """Return P(group and class | row) for an attribute, with a column for each pair.

    Pairs are in the order of the offsets: all classes of the first group, then of the second.
    """
    models, size, n_classes = groups.models[number], groups.sizes[number], groups.n_classes
    of_group = np.repeat(np.eye(size), n_classes, axis=1)
    of_class = np.tile(np.eye(n_classes), (1, size))
    pairs = _mean_chances(models, groups.labels[number], of_models, ops)
    if size * n_classes > MOST_PAIRS:  # then the models predict groups, not pairs
        return ops("Mul", ops("MatMul", pairs, of_group), ops("MatMul", chances, of_class))
    # The models predict pairs. P(group | class) is the probability of the pair divided by the sum
    # over the pairs of this class. It is multiplied by P(class) from the models of classes. A tiny
    # multiple of P(group) is added to each pair, so that P(group) replaces P(group | class) if the
    # sum is 0.
    of_groups = ops("MatMul", pairs, np.full(1, TINY) * (of_group.T @ of_group))
    pairs = ops("Add", pairs, of_groups)
    ratio = ops("Div", chances, ops("MatMul", pairs, of_class.T))
    return ops("Mul", ops("MatMul", ratio, of_class), pairs)


def _mean_chances(
    models: list[Any], classes: NDArray[Any], of_models: Iterator[Any], ops: Any
) -> Any:
    """Return the mean probabilities of several models, whose outputs are next in ``of_models``.

    A model may lack some of the ``classes``, or have them in another order.
    """
    total = None
    for model in models:
        known = np.asarray(unwrapped(model).classes_)
        mass = ops.number(next(of_models))
        part = ops("Div", mass, ops.sums(mass, known.size))
        if not np.array_equal(known, classes):
            part = ops("MatMul", part, np.float64(known[:, None] == np.asarray(classes)))
        total = part if total is None else ops("Add", total, part)
    return ops("Div", total, np.full(1, float(len(models))))


def unwrapped(model: BaseEstimator) -> BaseEstimator:
    """Return the model whose probabilities a wrapper passes on.

    Only some classes are opened, because ``estimator_`` of forests and others is not such a model,
    but a template of their parts.
    """
    if isinstance(model, FrozenEstimator):
        return unwrapped(model.estimator)
    if isinstance(model, FixedThresholdClassifier | TunedThresholdClassifierCV):
        return unwrapped(model.estimator_)
    return model
