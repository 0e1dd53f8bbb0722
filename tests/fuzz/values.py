"""A small sample, and many ways to spoil its rows and columns.

hypothesis chooses the structure (how many rows, what is odd about them); the numbers come from a
generator that it seeds, which is much cheaper than to draw each number.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from hypothesis import strategies as st
from scipy import sparse

# A case prefers the first entries: they let a call get further than its first check.
N_ROWS = [24, 24, 40, 24, 12, 6, 3, 2, 1]
PATTERNS = [
    *["plain"] * 6,
    *["rare group", "one group", "many groups", "empty cell", "one class", "three classes"],
    *["duplicated rows", "constant columns", "equal scores", "huge", "tiny", "offset", "wide"],
]


@dataclass
class Sample:
    """Rows with everything that a call may want to know of them."""

    n: int
    pattern: str
    rng: np.random.Generator
    X: np.ndarray = field(init=False)
    codes: np.ndarray = field(init=False)
    y: np.ndarray = field(init=False)

    def __post_init__(self):
        n, rng, pattern = self.n, self.rng, self.pattern
        n_groups = {"one group": 1, "many groups": max(2, n // 2)}.get(pattern, 2)
        self.codes = rng.permutation(np.arange(n) % n_groups)
        if pattern == "rare group":
            self.codes = (np.arange(n) == 0).astype(int)
        self.X = rng.normal(size=(n, 30 if pattern == "wide" else 3))
        self.X[:, 0] += self.codes
        self.y = rng.permutation(np.arange(n) % (3 if pattern == "three classes" else 2))
        if pattern == "empty cell":
            self.y[self.codes == 1] = 0
        if pattern == "one class":
            self.y[:] = 1
        if pattern == "duplicated rows":
            self.X[:] = self.X[rng.integers(0, min(2, n), size=n)]
        if pattern == "constant columns":
            self.X[:, :2] = 1.5
        self.X *= {"huge": 1e200, "tiny": 1e-200}.get(pattern, 1.0)
        self.X += 1e9 * (pattern == "offset")

    @property
    def groups(self):
        return np.array([f"g{code}" for code in self.codes])

    @property
    def two_attributes(self):
        return pd.DataFrame({"sex": self.groups, "age": self.rng.integers(0, 2, self.n)})

    @property
    def scores(self):
        scores = self.rng.normal(size=self.n) + self.y
        if self.pattern == "equal scores":
            scores[:] = 0.25
        return scores * {"huge": 1e200, "tiny": 1e-200}.get(self.pattern, 1.0)

    @property
    def predicted(self):
        return np.where(self.rng.random(self.n) < 0.3, 1 - self.y, self.y) % 3

    @property
    def clusters(self):
        return self.rng.integers(0, 3, self.n)

    @property
    def weights(self):
        return self.rng.uniform(0.1, 3, self.n)

    @property
    def affinity(self):
        distances = np.abs(np.subtract.outer(np.arange(self.n), np.arange(self.n)))
        return np.exp(-distances / 2.0)


@st.composite
def samples(draw):
    n, pattern = draw(st.sampled_from(N_ROWS)), draw(st.sampled_from(PATTERNS))
    return Sample(n, pattern, np.random.default_rng(draw(st.integers(0, 2**16))))


def with_entry(values, entry, dtype=None):
    """A copy whose first value is another one."""
    array = np.array(values, dtype=dtype or (object if isinstance(entry, str | None) else float))
    array[(0,) * array.ndim] = entry
    return array


def odd_index(values):
    """pandas with duplicated, unsorted labels as index."""
    kind = pd.DataFrame if np.ndim(values) == 2 else pd.Series
    return kind(values, index=np.arange(len(values))[::-1] // 2)


def read_only(values):
    array = np.array(values)
    array.flags.writeable = False
    return array


JUNK = [
    *(None, True, -1, 0, 1, 2, 1.5, float("nan"), float("inf"), -1e300, 1e-300, 1 + 2j),
    *("", "nonsense", b"bytes", [], [1, 2], (0.2, 0.4), {}, {"a": 1}),
    *(np.array([0.5]), np.float32(0.5), np.int64(3), int, len, object()),
]

# Each takes the good value (an array with one row per person) and returns an odd one.
ODD_ROWS = {
    "a list": lambda v: np.asarray(v).tolist(),
    "float32": lambda v: np.asarray(v, dtype=np.float32),
    "object dtype": lambda v: np.asarray(v, dtype=object),
    "read only": read_only,
    "every other of a longer one": lambda v: np.repeat(v, 2, axis=0)[::2],
    "reversed view": lambda v: np.asarray(v)[::-1],
    "odd index": odd_index,
    "NaN": lambda v: with_entry(v, np.nan),
    "inf": lambda v: with_entry(v, np.inf),
    "-inf": lambda v: with_entry(v, -np.inf),
    "huge entry": lambda v: with_entry(v, 1e308),
    "None": lambda v: with_entry(v, None),
    "a word": lambda v: with_entry(v, "word"),
    "pandas.NA": lambda v: with_entry(v, pd.NA, object),
    "a list inside": lambda v: [[1, 2, 3], *np.asarray(v).tolist()[1:]],
    "empty": lambda v: np.asarray(v)[:0],
    "one row short": lambda v: np.asarray(v)[1:],
    "one row more": lambda v: np.concatenate([v, np.asarray(v)[:1]]),
    "three dimensions": lambda v: np.asarray(v).reshape(len(v), -1, 1).repeat(2, axis=2),
    "complex": lambda v: np.asarray(v) * 1j,
    "all equal": lambda v: np.full_like(v, np.asarray(v).flat[0]) if np.size(v) else v,
    "constant zero": lambda v: np.zeros(np.shape(v)),
    "dates": lambda v: np.full(np.shape(v), np.datetime64("2020-01-01")),
    "bytes": lambda v: np.full(np.shape(v), b"x"),
    "a generator": lambda v: iter(np.asarray(v).tolist()),
    "masked": lambda v: np.ma.masked_array(v, np.zeros(np.shape(v), bool)),
}
ODD_MATRICES = {
    **ODD_ROWS,
    "Fortran order": np.asfortranarray,
    "csr": sparse.csr_array,
    "csc matrix": sparse.csc_matrix,
    "coo": sparse.coo_array,
    "sparse with NaN": lambda v: sparse.csr_array(with_entry(v, np.nan)),
    "int64 indices": lambda v: sparse.csr_array(v).astype(np.float32),
    "one column": lambda v: np.asarray(v)[:, :1],
    "no column": lambda v: np.asarray(v)[:, :0],
    "1-d": lambda v: np.asarray(v)[:, 0],
    "integers": lambda v: np.nan_to_num(np.clip(v, -9, 9)).astype(int),
    "frame": lambda v: pd.DataFrame(v).rename(columns=str),
    "frame with words": lambda v: pd.DataFrame(v).rename(columns=str).assign(sex="f"),
    "nullable": lambda v: pd.DataFrame(v).rename(columns=str).astype("Float64"),
    "same names": lambda v: pd.DataFrame(v, columns=["a"] * np.shape(v)[1]),
    "mixed names": lambda v: pd.DataFrame(v, columns=["a", *range(1, np.shape(v)[1])]),
    "categories": lambda v: pd.DataFrame(v).rename(columns=str).astype("category"),
}
ODD_VECTORS = {
    **ODD_ROWS,
    "column": lambda v: np.asarray(v)[:, None],
    "two columns": lambda v: np.column_stack([v, v]),
    "words": lambda v: np.array([f"w{one}" for one in np.asarray(v).tolist()]),
    "series of words": lambda v: pd.Series([f"w{one}" for one in np.asarray(v).tolist()]),
    "categories": lambda v: pd.Series(v).astype("category"),
    "unused category": lambda v: pd.Series(
        pd.Categorical(
            np.asarray(v).tolist(), categories=[*dict.fromkeys(np.asarray(v).tolist()), "never"]
        )
    ),
    "nullable": lambda v: pd.Series(np.asarray(v)).convert_dtypes(),
    "nullable with NA": lambda v: with_missing(v),
    "arrow": lambda v: pd.Series(np.asarray(v)).convert_dtypes(dtype_backend="pyarrow"),
    "boolean": lambda v: np.asarray(v) == np.asarray(v).flat[0],
    "minus one and one": lambda v: np.where(np.asarray(v) == np.asarray(v).flat[0], 1, -1),
    "int8": lambda v: (np.arange(len(v)) % 2 * 127).astype(np.int8),
    "all different": lambda v: np.arange(len(v)),
    "mixed types": lambda v: np.array([1, "1", *[2.0] * len(v)][: len(v)], dtype=object),
    "negative": lambda v: -np.arange(len(v)).astype(float),
    "sparse column": lambda v: sparse.csr_array(np.ones((len(v), 1))),
    "a dict": lambda v: {"a": np.asarray(v)},
    "two in a dict": lambda v: {"a": np.asarray(v), "b": np.asarray(v)[1:]},
    "unordered index": lambda v: pd.Series(np.asarray(v), index=np.arange(len(v))[::-1]),
    "intervals": lambda v: pd.Series(pd.cut(np.arange(len(v)), 2)) if len(v) else v,
    "string dtype": lambda v: pd.Series([str(one) for one in np.asarray(v)], dtype="string"),
    "a str": lambda v: "abc",
}


def with_missing(values):
    series = pd.Series(np.asarray(values)).convert_dtypes()
    series.iloc[:1] = pd.NA
    return series


def spoil(draw, value: Any, ways: dict) -> tuple[str, Any]:
    """Draw a way and return its name and the odd value; not every way fits every value."""
    name = draw(st.sampled_from(sorted(ways)))
    try:
        return name, ways[name](value)
    except (TypeError, ValueError, IndexError, AttributeError):  # numpy or pandas cannot make it
        return "as it was", value
