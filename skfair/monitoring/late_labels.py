"""Predictions of a monitor whose true labels come later.

``DisparityMonitor.add_predictions`` notes them here, and ``add_labels`` takes them out again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from skfair.exceptions import SmallGroupWarning
from skfair.groups.encoding import encode_groups
from skfair.groups.limits import Limit, limits_of_attributes
from skfair.groups.row_units import unit_codes
from skfair.monitoring.batches import kind_of
from skfair.monitoring.comparison import texts
from skfair.utils.text import listed
from skfair.utils.validation import check_labels, one_dimensional
from skfair.utils.warn import unwanted

# A kind is what is kept of a row: its prediction, its group by attribute, and its unit. The unit is
# None if rows have no units.
Kind = tuple[Any, dict[str, str], Any]


class LatePredictions(dict[Any, Kind]):
    """The prediction, the groups and the unit of each row that waits for its label, by its id.

    Rows of the same kind share one object, so without units a million rows take little more memory
    than their ids.
    """

    def note(self, ids: Any, y_pred: Any, groups: Any, limit: Limit, units: Any) -> None:
        """Add rows; raise if an id waits already, or occurs twice.

        ``limit`` is that of the monitor, for a check of the attributes.
        """
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
        # Without units every row has the unit None.
        codes, owners = ([0] * n_rows, [None]) if units is None else unit_codes(units, n_rows)
        columns.append([owners[code] for code in codes])
        known = [row_id for row_id, n in Counter(columns[0]).items() if n > 1 or row_id in self]
        if known:
            raise ValueError(f"ids are noted already or twice: {listed(known)}.")
        # ``kinds`` finds the object of a kind that earlier rows share. The type of the prediction
        # is part of the key, since True and 1 are equal.
        each = {id(kind): kind for kind in self.values()}.values()
        kinds = {(type(kind[0]), *kind[::2], *kind[1].items()): kind for kind in each}
        for row_id, label, unit, *row in zip(*columns, *rows, strict=True):
            own = tuple(zip(encoding.levels.attributes, row, strict=True))
            kind = (label, dict(own), unit)
            self[row_id] = kinds.setdefault((type(label), label, unit, *own), kind)

    def rows(self, ids: list[Any]) -> tuple[Any, dict[str, Any], list[Any] | None]:
        """Return the predictions, the groups by attribute and the units of the rows of these ids.

        The units are None if no row has one. The rows stay until their labels have been read.
        """
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
        attributes = list(dict.fromkeys(a for _, groups, _ in rows for a in groups))
        if any(len(groups) < len(attributes) for _, groups, _ in rows):
            raise ValueError(
                f"The ids were noted with other attributes, some of {listed(attributes)}. Add the "
                "labels of each kind in a batch of its own."
            )
        units = [unit for *_, unit in rows]
        groups = {a: np.array([own[a] for _, own, _ in rows]) for a in attributes}
        predicted = np.array([label for label, *_ in rows])
        return predicted, groups, None if set(units) <= {None} else units

    def to_list(self) -> list[list[Any]]:
        """Return one list per kind: prediction, groups, unit (if there is one), and all its ids."""
        if any(isinstance(row_id, tuple) for row_id in self):
            raise ValueError("ids that are tuples cannot be stored as JSON. Use text or numbers.")
        kinds: dict[int, list[Any]] = {}
        for row_id, kind in self.items():
            own = kind if kind[2] is not None else kind[:2]
            kinds.setdefault(id(kind), [*own, []])[-1].append(row_id)
        return list(kinds.values())

    def restore(self, kinds: Iterable[list[Any]], limit: Limit) -> None:
        """Add the rows that ``to_list`` returned; raise unless they have the limit's attributes."""
        for label, groups, *unit, ids in kinds:
            for value in (label, *unit):
                kind_of(value, "A prediction that waits, or its unit")
            texts([*groups, *groups.values()], 2 * len(groups))
            is_known = groups.keys() == limit.keys() if isinstance(limit, Mapping) else bool(groups)
            kind = (label, dict(groups), unit[0] if unit else None)
            for row_id in ids:
                kind_of(row_id, "The id of a prediction that waits")
                if row_id in self or not is_known:
                    raise ValueError(
                        f"The prediction of id {row_id!r} is twice, or has other attributes."
                    )
                self[row_id] = kind
