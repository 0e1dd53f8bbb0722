"""Decisions of new rows: expected utility minus offsets, with known or estimated groups.

Both ways to fit decisions (``decisions/solve.py`` and ``certified/paths.py``) end with
:func:`decider_attributes`, which stores a :class:`Decider`. ``FairDecisionClassifier`` calls
:meth:`Decider.margins` to predict, with strata from :func:`strata_of_new_rows`.
:meth:`Decider.thresholds` and :func:`linear_of` are its ``to_thresholds`` and ``to_linear``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import logit
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.utils.validation import _num_samples

from skfair._typing import BoolArray, ColumnsLike, FloatArray, IntArray, MatrixLike
from skfair.enforcement.decisions.mixtures import Mixture
from skfair.enforcement.decisions.shares import estimated_shares, margins, with_ties_broken
from skfair.estimators.decisions.bind import LabelledRows
from skfair.estimators.group_probabilities import GroupModels
from skfair.estimators.probability_corrections import ProbabilityCorrections
from skfair.groups.attributes import CONTROL, check_alignment
from skfair.groups.levels import GroupLevels
from skfair.groups.named_columns import take_columns

# So many times the interval from 0 to 1 can be halved before it is narrower than a float.
_HALVINGS = 60


@dataclass(frozen=True, eq=False)
class Decider:
    """Makes the decision with the largest expected utility minus offset for each row.

    Classes are numbered as in ``LabelledRows``, so of two classes the positive one is the last.
    """

    groups: GroupLevels  # groups of the fit
    strata: GroupLevels | None  # strata of the fit, if limits hold within them
    # (n_groups,): share of each group in its attribute. A row of an unknown group counts as a
    # mixture of the groups with these shares
    marginals: FloatArray
    utility: FloatArray  # (n_classes, n_classes): utility of decisions (column) by true class
    # (n_groups, n_strata, n_classes, n_classes): the offset of each decision (last axis) by group,
    # stratum and true class
    offsets: FloatArray
    # Returns a number between 0 and 1 for each row, which selects one of a mixture's thresholds
    draws: Callable[[Any], FloatArray]
    group_models: GroupModels | None  # None if groups are known or not used
    tie_weight: float = 0.0  # c in v + c v log v, which replaces a utility v to break ties
    corrections: ProbabilityCorrections | None = None  # corrections of the probabilities
    mixture: Mixture | None = None  # mixture of thresholds; None if each group has one
    # The offsets that another deal of the folds might have given; None if that is not known
    other_offsets: FloatArray | None = None

    @property
    def uses_groups(self) -> bool:
        """Whether decisions of rows of different groups may differ."""
        is_corrected = self.corrections is not None and self.corrections.is_by_group
        is_used = self.offsets.any() or is_corrected or self.mixture is not None
        return bool(is_used and self.groups.n_groups > 1)

    def margins(
        self, rows: Any, chances: FloatArray, groups: IntArray | None, strata: IntArray | None
    ) -> FloatArray:
        """Return the expected utility of each decision minus its offset, (n_samples, n_classes).

        Only the models of groups and the draws of mixtures read ``rows``. ``chances`` are
        the probabilities of the classes. ``groups`` (n_attributes, n_samples) is None if decisions
        do not use them, and -1 for an unknown group. ``strata`` is None without strata.
        """
        if self.corrections is not None:
            chances = self.corrections(chances, None if groups is None else groups[0])
        values = with_ties_broken(np.asarray(chances @ self.utility), self.tie_weight)
        if self.mixture is not None:
            assert groups is not None
            values = self.mixture.values(values, groups[0], self.draws(rows))
        if not self.offsets.any():
            return values
        if self.group_models is None:
            result = values - self._paid(chances, groups, strata)
        else:
            joint = self.group_models.joint(rows, chances)
            shares = estimated_shares(joint, strata, self.offsets.shape[1])
            result = margins(values, shares, self.offsets.reshape(-1, self.offsets.shape[-1]))
        if self.mixture is not None:
            # Offsets of a mixture are on the scale of draws. Rows of unknown groups have no draw,
            # so they keep their values, to which the mixture has applied its usual threshold.
            assert groups is not None
            is_unknown = groups[0] < 0
            result[is_unknown] = values[is_unknown]
        return result

    def dealt_anew(self) -> Decider:
        """Return the decider that another deal of the folds might have given."""
        assert self.other_offsets is not None
        return replace(self, offsets=self.other_offsets)

    def _paid(
        self, chances: FloatArray, groups: IntArray | None, strata: IntArray | None
    ) -> FloatArray:
        """Return the offset of each decision of rows of known groups, (n_samples, n_classes).

        A row with an unknown group in any attribute counts as an average row in all of them. This
        is ``shares @ offsets`` of :mod:`skfair.enforcement.decisions.shares`, without the sparse
        shares, which take longer for one row than many models.
        """
        starts, stratum = self.groups.offsets, 0 if strata is None else strata
        if groups is None:  # no offset depends on the group
            groups = np.repeat(starts[:-1, None], chances.shape[0], axis=1)
        has_unknown = groups.min(initial=0) < 0
        unknown = np.flatnonzero((groups < 0).any(axis=0)) if has_unknown else np.zeros(0, int)
        paid = np.zeros_like(chances)
        for codes, first, end in zip(groups, starts[:-1], starts[1:], strict=True):
            for k, of_class in enumerate(chances.T):
                offsets = self.offsets[codes, stratum, k]
                if unknown.size:
                    average = np.tensordot(
                        self.marginals[first:end], self.offsets[first:end, :, k], 1
                    )
                    offsets[unknown] = average[0 if strata is None else strata[unknown]]
                paid += of_class[:, None] * offsets
        return paid

    def thresholds(self, names: NDArray[Any] | None) -> Any:
        """Return the threshold of each group on the probability of the second of two classes.

        ``names`` are the names of the groups, None if decisions do not use them. With several
        attributes there is a threshold for each intersection, see :meth:`row_thresholds`.
        """
        import pandas as pd

        if self.group_models is not None and self.offsets.any():
            raise ValueError(
                "These decisions have no thresholds: they use estimated groups "
                "(group_estimators_). If the models are logistic regressions, to_formula() returns "
                "their coefficients; skfair.export.to_onnx converts others."
            )
        own = map(range, self.groups.offsets[:-1], self.groups.offsets[1:])
        cells = np.array(list(product(*own)))  # (n_cells, n_attributes): the intersections
        if names is None:  # the offsets of all groups are equal
            cells, names = cells[:1], np.array(["everybody"], dtype=object)
        else:
            names = np.array([", ".join(map(str, names[cell])) for cell in cells], dtype=object)
        n_strata = self.offsets.shape[1]
        groups = np.repeat(cells.T, n_strata, axis=1)
        strata = None if self.strata is None else np.tile(np.arange(n_strata), len(names))
        threshold, is_above = self.row_thresholds(None, groups.shape[1], groups, strata)
        index: Any = pd.Index(names, name="group")
        if self.strata is not None:
            index = pd.MultiIndex.from_product(
                [names, self.strata.names], names=["group", "stratum"]
            )
        side = np.where(is_above, "above", "below")
        return pd.DataFrame({"threshold": threshold, "selected": side}, index=index)

    def row_thresholds(
        self, rows: Any, n: int, groups: IntArray | None, strata: IntArray | None
    ) -> tuple[FloatArray, BoolArray]:
        """Return the threshold of each of n rows, and whether they are selected above it.

        It is the probability of the second of two classes at which both decisions have the same
        margin, while the groups of the row, known or estimated, stay as they are. It is infinite if
        the decision is the same at any probability. Only models of groups read ``rows``.
        """
        if self.mixture is not None:
            raise ValueError(
                "A group has several thresholds here, and a number made of the columns of a row "
                "says which one it gets. Fit with group_aware=True for one threshold in each group."
            )
        if self.corrections is not None and not self.corrections.is_rising:
            raise ValueError(
                "Probabilities of a group are corrected by a formula that does not rise with them, "
                "so decisions are no thresholds on them. Use predict."
            )
        plain = replace(self, corrections=None, tie_weight=0.0)
        # These are the offsets of a row that certainly belongs to the first class, and of a row
        # that certainly belongs to the second class.
        paid = [
            self.utility[k] - plain.margins(rows, np.tile(np.eye(2)[k], (n, 1)), groups, strata)
            for k in range(2)
        ]
        own_groups = None if groups is None else groups[0]

        def gain(p: FloatArray) -> FloatArray:
            """Return the margin of the second decision over the first at some probabilities."""
            chances = np.column_stack([1 - p, p])
            if self.corrections is not None:
                chances = self.corrections(chances, own_groups)
            values = with_ties_broken(chances @ self.utility, self.tie_weight)
            values = values - chances[:, :1] * paid[0] - chances[:, 1:] * paid[1]
            return np.asarray(values[:, 1] - values[:, 0])

        return _crossings(gain, n)


def _crossings(gain: Callable[[FloatArray], FloatArray], n: int) -> tuple[FloatArray, BoolArray]:
    """Return where each of n functions on [0, 1] changes its sign, and whether it is higher at 1.

    If a function is positive at both ends, or at none, the place is infinite, beyond the other end.
    """
    low, high = np.zeros(n), np.ones(n)
    first, last = gain(low), gain(high)
    is_rising = last >= first
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        is_beyond = (gain(middle) > 0) == is_rising
        low, high = np.where(is_beyond, low, middle), np.where(is_beyond, middle, high)
    is_constant = (first > 0) == (last > 0)
    beyond = np.where((first > 0) == is_rising, -np.inf, np.inf)
    return np.where(is_constant, beyond, (low + high) / 2), is_rising


def decider_attributes(
    rows: LabelledRows,
    models: list[Any],  # models of the classes
    group_models: GroupModels | None,
    utility: FloatArray,
    offsets: FloatArray,
    draws: Callable[[Any], FloatArray],
    other_offsets: FloatArray | None = None,
    **parts: Any,  # further fields of the decider
) -> dict[str, Any]:
    """Return the attributes that predictions need: the decider, its classes, models and offsets.

    The decider has the order of ``rows.classes``, whereas ``classes_`` and ``offsets_`` are sorted.
    """
    groups, strata, n_classes = rows.groups.levels, rows.strata, rows.classes.size
    marginals = rows.groups.sums(rows.sample_weight)
    marginals /= marginals[groups.offsets[0] : groups.offsets[1]].sum()
    shape = groups.n_groups, rows.n_strata, n_classes, n_classes
    offsets = offsets.reshape(shape)
    if other_offsets is not None:
        parts["other_offsets"] = other_offsets.reshape(shape)
    levels = None if strata is None else strata.levels
    decider = Decider(groups, levels, marginals, utility, offsets, draws, group_models, **parts)
    order = np.argsort(rows.classes)
    return {
        "_decider": decider,
        "classes_": rows.classes[order],
        "pos_label_": rows.pos_label,
        "estimators_": models,
        "group_estimators_": [] if group_models is None else group_models.models,
        "offsets_": offsets[..., order, :][..., order],
        "tie_weight_": decider.tie_weight,
    }


def strata_of_new_rows(
    decider: Decider, X: MatrixLike, control_features: ColumnsLike | None, columns: Any
) -> IntArray | None:
    """Return the strata of new rows, None if there are none; raise if they are missing.

    ``columns`` names their columns of X, if X holds them.
    """
    if control_features is not None:
        check_alignment(control_features, X, CONTROL)
    if decider.strata is None:
        return None
    if control_features is None and columns is not None:
        control_features = take_columns(X, columns, "control_features")
    if control_features is None:
        raise ValueError(
            "The limits hold within strata: pass predict(X, control_features=...), or name the "
            "columns of X in Sensitive(control_features=...)."
        )
    codes = decider.strata.encode(control_features, n_samples=_num_samples(X))
    return np.asarray(codes[0])


def linear_of(thresholds: Any, models: Sequence[Any], names: NDArray[Any], direction: float) -> Any:
    """Return the linear formula of the decisions in each group, given its threshold.

    ``thresholds`` is the table of :meth:`Decider.thresholds`, and ``names`` are the features.
    Raises unless there is a single model, a logistic regression. ``direction`` is -1 if the
    thresholds are on the probability of the first class of the model (the positive one), else 1.
    """
    import pandas as pd

    model = models[0].estimator if isinstance(models[0], FrozenEstimator) else models[0]
    if len(models) > 1 or not isinstance(model, LogisticRegression):
        raise ValueError(
            "Decisions are linear only for one fitted LogisticRegression: pass it with "
            f"cv='prefit'. These are {len(models)} models of the type {type(model).__name__}."
        )
    cut = direction * logit(np.clip(thresholds["threshold"].to_numpy(), 0.0, 1.0))
    sign = np.where(thresholds["selected"] == "above", 1.0, -1.0)
    columns: Any = pd.Index([*names, "intercept"])
    values = np.column_stack(
        [np.outer(sign, model.coef_[0]), sign * (float(model.intercept_[0]) - cut)]
    )
    return pd.DataFrame(values, index=thresholds.index, columns=columns)
