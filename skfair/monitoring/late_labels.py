"""Predictions of a monitor whose true labels come later."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from skfair._typing import ColumnLike, ColumnsLike
from skfair.exceptions import SmallGroupWarning
from skfair.groups.encoding import encode_groups
from skfair.groups.limits import Limit, limits_of_attributes
from skfair.monitoring.batches import kind_of
from skfair.monitoring.comparison import texts
from skfair.utils.text import listed
from skfair.utils.validation import check_labels, one_dimensional
from skfair.utils.warn import unwanted

# A prediction, and the name of the group by attribute.
Kind = tuple[Any, dict[str, str]]


class LatePredictions(dict[Any, Kind]):
    """The prediction and the groups of each row that waits, by its id.

    Rows of the same kind share one object: a million that wait take the room of their ids.
    """

    def note(self, ids: ColumnLike, y_pred: ColumnLike, groups: ColumnsLike, limit: Limit) -> None:
        """Add rows; raise for ids that are known."""
        n_rows = len(one_dimensional(ids, "ids"))
        columns = []
        for name, values in {"ids": ids, "y_pred": y_pred}.items():
            check_labels(values, name, n_rows)
            columns.append(one_dimensional(values, name).tolist())
        with unwanted(SmallGroupWarning):  # a batch need not have every declared group
            encoding = encode_groups(groups, n_samples=n_rows, intersectional=False)
        if isinstance(limit, Mapping):
            limits_of_attributes(limit, encoding)
        levels = [str(level) for own in encoding.levels.levels for level in own]
        rows = [[levels[code] for code in own] for own in encoding.codes.tolist()]
        known = [row_id for row_id, n in Counter(columns[0]).items() if n > 1 or row_id in self]
        if known:
            raise ValueError(f"ids are noted already or twice: {listed(known)}.")
        each = {id(kind): kind for kind in self.values()}.values()
        kinds = {(type(kind[0]), kind[0], *kind[1].items()): kind for kind in each}
        for row_id, label, *row in zip(*columns, *rows, strict=True):
            own = tuple(zip(encoding.levels.attributes, row, strict=True))
            self[row_id] = kinds.setdefault((type(label), label, *own), (label, dict(own)))

    def rows(self, ids: list[Any]) -> tuple[Any, dict[str, Any]]:
        """Return the predictions of rows, and their groups by attribute."""
        unknown = [row_id for row_id in ids if row_id not in self]
        if unknown:
            raise ValueError(
                f"No predictions of ids {listed(unknown)} wait for labels: they were not noted, or "
                "their labels were read already, which cannot be changed. Leave these ids out."
            )
        twice = [row_id for row_id, n in Counter(ids).items() if n > 1]
        if twice:
            raise ValueError(f"ids has {listed(twice)} twice. Pass one label for each row.")
        rows = [self[row_id] for row_id in ids]
        attributes = list(dict.fromkeys(a for _, groups in rows for a in groups))
        if any(len(groups) < len(attributes) for _, groups in rows):
            raise ValueError(
                f"The ids were noted with other attributes, some of {listed(attributes)}. Add the "
                "labels of each kind in a batch of its own."
            )
        groups = {a: np.array([own[a] for _, own in rows]) for a in attributes}
        return np.array([predicted for predicted, _ in rows]), groups

    def to_list(self) -> list[list[Any]]:
        """Return the ids that wait by prediction and groups, which are written once for all."""
        if any(isinstance(row_id, tuple) for row_id in self):
            raise ValueError("ids that are tuples cannot be stored as JSON. Use text or numbers.")
        kinds: dict[int, list[Any]] = {}
        for row_id, kind in self.items():
            kinds.setdefault(id(kind), [*kind, []])[2].append(row_id)
        return list(kinds.values())

    def restore(self, kinds: Iterable[list[Any]], limit: Limit) -> None:
        """Add rows that were stored."""
        for label, groups, ids in kinds:
            kind_of(label, "A prediction that waits")
            texts([*groups, *groups.values()], 2 * len(groups))
            is_known = groups.keys() == limit.keys() if isinstance(limit, Mapping) else bool(groups)
            kind = (label, dict(groups))
            for row_id in ids:
                kind_of(row_id, "The id of a prediction that waits")
                if row_id in self or not is_known:
                    raise ValueError(
                        f"The prediction of id {row_id!r} is twice, or has other attributes."
                    )
                self[row_id] = kind
