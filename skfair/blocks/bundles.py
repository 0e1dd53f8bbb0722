"""Blocks of rows put together from several collections where they are, and checked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def bundle(number: int, keys: list[tuple[str, str | None]], blocks: Sequence[Any]) -> Any:
    """Put the parts of one block together and check that they have the same rows."""
    lengths = {name: n_rows(part) for (name, _), part in zip(keys, blocks, strict=True)}
    if len(set(lengths.values())) > 1:
        lengths_of_blocks = ", ".join(f"{name} {length}" for name, length in lengths.items())
        raise ValueError(f"Partition {number}: the numbers of rows differ ({lengths_of_blocks}).")
    _check_index(number, keys, blocks)
    out: dict[str, Any] = {}
    for (name, column), part in zip(keys, blocks, strict=True):
        if column is None:
            out[name] = part
        else:
            out.setdefault(name, {})[column] = part
    return out


def _check_index(number: int, keys: list[tuple[str, str | None]], blocks: Sequence[Any]) -> None:
    """Raise if parts of one block have an index each, and these differ."""
    indexed = [
        (name, part)
        for (name, _), part in zip(keys, blocks, strict=True)
        if hasattr(getattr(part, "index", None), "equals")
    ]
    for name, part in indexed[1:]:
        first, other = indexed[0]
        if not part.index.equals(other.index):
            raise ValueError(
                f"Partition {number}: the index labels of {name} and {first} differ, but "
                "rows are matched by position, so they would get the values of other rows. Pass "
                "columns of one DataFrame, or drop the index if the order is right: "
                ".to_dask_array(lengths=True), or .to_numpy() in memory."
            )


def n_rows(part: Any) -> int:
    """Return the number of rows of a part."""
    return int(part.shape[0]) if hasattr(part, "shape") else len(part)
