"""Predictions of a monitor whose true labels come later."""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from collections.abc import Mapping
from typing import Any, Self

import numpy as np

from skfair._typing import ColumnLike, ColumnsLike
from skfair.groups.encoding import encode_groups
from skfair.groups.limits import limits_of_attributes
from skfair.monitoring.batches import Batch, is_empty, names_of_rows
from skfair.monitoring.state import Alarm, StoredMonitor
from skfair.utils.text import listed
from skfair.utils.validation import check_labels, one_dimensional


class LateLabels(StoredMonitor):
    """A monitor that keeps predictions until their labels are known."""

    @abstractmethod
    def update(
        self,
        y_true: ColumnLike | None,
        y_pred: ColumnLike,
        sensitive_features: ColumnsLike,
        *,
        batch: Batch = None,
    ) -> Alarm | None:
        """Read a batch."""

    def add_predictions(
        self, ids: ColumnLike, y_pred: ColumnLike, sensitive_features: ColumnsLike
    ) -> Self:
        """Note decisions whose true labels are not known yet.

        Parameters
        ----------
        ids : array-like of shape (n_samples,)
            What identifies each row.
        y_pred : array-like of shape (n_samples,)
            Decisions.
        sensitive_features : array-like of shape (n_samples,) or (n_samples, n_attributes)
            The group of each row; with a limit for each attribute, named columns.

        Returns
        -------
        self : DisparityMonitor
            The monitor; it keeps these rows until their labels are added.
        """
        if is_empty(ids, y_pred, sensitive_features):
            return self
        n_rows = len(one_dimensional(ids, "ids"))
        columns = []
        for name, values in {"ids": ids, "y_pred": y_pred}.items():
            check_labels(values, name, n_rows)
            columns.append(one_dimensional(values, name).tolist())
        groups = names_of_rows(sensitive_features, n_rows)
        if isinstance(self._limit, Mapping):
            limits_of_attributes(self._limit, encode_groups(groups, intersectional=False))
        known = [
            row_id for row_id, n in Counter(columns[0]).items() if n > 1 or row_id in self._pending
        ]
        if known:
            raise ValueError(f"ids are noted already or twice: {listed(known)}.")
        # Rows of the same kind share one object: a million that wait take the room of their ids.
        kinds = {(type(kind[0]), kind[0], *kind[1].items()): kind for kind in self._kinds()}
        for row_id, label, *row in zip(*columns, *groups.values(), strict=True):
            own = tuple(zip(groups, row, strict=True))
            self._pending[row_id] = kinds.setdefault((type(label), label, *own), (label, dict(own)))
        return self

    def _kinds(self) -> list[tuple[Any, dict[str, str]]]:
        """Return the predictions and groups of the rows that wait, each once."""
        return list({id(kind): kind for kind in self._pending.values()}.values())

    def add_labels(
        self, ids: ColumnLike, y_true: ColumnLike, *, batch: Batch = None
    ) -> Alarm | None:
        """Read the true labels of rows that were noted before, as one batch.

        Parameters
        ----------
        ids : array-like of shape (n_samples,)
            What identifies each row.
        y_true : array-like of shape (n_samples,)
            Their true labels.
        batch : int, str, date or datetime, default=None
            Number or time of the batch.

        Returns
        -------
        alarm : Alarm or None
            The first alarm, if there has been one.
        """
        names = one_dimensional(ids, "ids").tolist()
        unknown = [name for name in names if name not in self._pending]
        if unknown:
            raise ValueError(f"There are no predictions of ids {listed(unknown)}.")
        if len(set(names)) < len(names):
            twice = [name for name, n in Counter(names).items() if n > 1]
            raise ValueError(f"ids has {listed(twice)} twice. Pass one label for each row.")
        rows = [self._pending[name] for name in names]
        attributes = list(dict.fromkeys(a for _, groups in rows for a in groups))
        if any(len(groups) < len(attributes) for _, groups in rows):
            raise ValueError(
                f"The ids were noted with other attributes, some of {listed(attributes)}. Add the "
                "labels of each kind in a batch of its own."
            )
        groups = {a: np.array([own[a] for _, own in rows]) for a in attributes}
        alarm = self.update(
            y_true, np.array([predicted for predicted, _ in rows]), groups, batch=batch
        )
        for name in names:
            del self._pending[name]
        return alarm
