"""Tables in files, read in blocks for audits: only the columns in use, few rows at a time.

The commands of ``python -m skfair`` make a :class:`TableFile` from their options
(``table_of`` in :mod:`skfair.report.commands.audit`), call :meth:`TableFile.check` once, and then
:meth:`TableFile.blocks` for each pass over the rows. A file is CSV or other separated text (also
compressed), Excel or parquet, by the end of its name. What is wrong with a file is said in the
words of somebody who does not program.

The rest of the file reads texts: numbers with decimal commas (:func:`numbers_of`), and the bins of
the option ``--bins`` (:func:`read_bins`).
"""

from __future__ import annotations

import bz2
import csv
import gzip
import lzma
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from importlib.util import find_spec
from itertools import islice, pairwise
from pathlib import Path
from shlex import quote
from tarfile import TarError
from typing import Any, NamedTuple
from zipfile import BadZipFile
from zlib import error as ZlibError

import numpy as np
import pandas as pd

from skfair.groups.attributes import MAX_LEVELS, MAX_NUMERIC_LEVELS
from skfair.groups.engine_tables import LABELS
from skfair.groups.telling_columns import may_name_people
from skfair.report.files.exact_numbers import DIGITS, exactly
from skfair.utils.text import did_you_mean, listed, plural

# Errors of readers of damaged files. OSError comes from bz2 and from the first bytes of gzip, and
# KeyError from parquet files.
_DAMAGED = (EOFError, OSError, KeyError, ZlibError, BadZipFile, TarError, lzma.LZMAError)
# Options of pandas.read_csv that read each line of a file as one value.
_LINES: dict[str, Any] = {"sep": "\0", "quoting": csv.QUOTE_NONE}
# Spreadsheets that are refused.
_SPREADSHEETS = (".xls", ".xlsm", ".xlsb", ".ods")
_KINDS = {".parquet": "parquet", ".pq": "parquet", ".xlsx": "Excel"}
# How files are opened to read their bytes to the end. pandas does not read the end of archives such
# as .tar.gz, so it would not notice that it is missing.
_OPENERS: dict[str, Any] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
# The largest number of bytes of a line: a million columns of 16 bytes. A compressed file of 0.7 MB
# that is one line without an end takes 3 GB to read.
_MOST_BYTES = 16_000_000
# The first bytes of .xlsx files (and other zip files), and of .xls files
_EXCEL = (b"PK\x03\x04", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1")
_DATE = r"\d{1,4}([-./])\d{1,2}\1\d{1,4}([T ].*)?"
# A message names at most this many columns.
_MOST_NAMES = 40


class TableFile(NamedTuple):
    """A file, the columns that are read, and how attributes become groups."""

    path: Path
    # The columns of labels, scores, weights and units, by argument of ``audit``
    named: Mapping[str, str]
    groups: list[str]  # the sensitive attributes
    within: list[str]  # the attributes that strata are made of
    bins: Mapping[str, list[Any]]  # edges of the bins of each attribute: numbers, or dates
    missing: str | None  # name of the group of rows without a value; if None, they are an error
    block_rows: int
    # Rows that were dropped from each block. blocks() fills this list, which starts empty.
    n_dropped: list[int]
    # Set if a first pass has found labels that look like numbers in one block and not in another
    labels_are_text: bool = False
    encoding: str = "utf-8"
    date_format: str | None = None  # form of the dates in bins; None for 2026-12-31
    # The mark before decimals, if numbers are written as text. If None, pandas reads numbers.
    decimal: str | None = None
    needed: Sequence[str] = ()  # rows without a value of one of these columns are dropped
    others: tuple[str, ...] = ()  # the columns of a data set that are neither groups nor labels
    # The types of the numbers that a record says were in single or half precision. All others were
    # in double precision. If None, numbers are read as they are.
    precision: Mapping[str, str] | None = None

    @classmethod
    def of_columns(cls, path: str, columns: Iterable[str], encoding: str) -> TableFile:
        """Return a file whose columns have no roles, for :meth:`as_written`."""
        whole = cls(Path(path), {}, [], [], {}, None, 1, [], encoding=encoding)
        return whole._replace(others=tuple(columns))

    @property
    def labels(self) -> list[str]:
        """The columns that hold labels or numbers to predict."""
        return [own for argument, own in self.named.items() if argument in LABELS]

    @property
    def attributes(self) -> list[str]:
        """The columns that groups and strata are made of."""
        return [*self.groups, *self.within]

    @property
    def used(self) -> list[str]:
        """All columns that are read, each once."""
        return [*dict.fromkeys([*self.named.values(), *self.attributes, *self.others])]

    def check(self) -> None:
        """Raise unless the file exists, can be read to its end, and has the columns."""
        _check_file(self.path, self.encoding)
        if self._kind == "text":
            with self._explained():
                _check_lines(self.path)
        names = self.names()
        known, counts = dict.fromkeys(names), Counter(names)
        unknown = [name for name in self.used if name not in known]
        if unknown:
            has_comma = any("," in name for name in known)
            hint = """ Quote a name with a comma: --sensitive '"a, b",c'.""" if has_comma else ""
            raise ValueError(
                f"{self.path.name} has no column {listed(unknown)}. Its columns are "
                f"{', '.join(map(repr, names[:_MOST_NAMES]))}"
                f"{f' and {len(names) - _MOST_NAMES:,} more' if len(names) > _MOST_NAMES else ''}."
                f"{did_you_mean(unknown[0], names)}{hint}"
            )
        twice = [name for name in self.used if counts[name] > 1]
        if twice:
            raise ValueError(
                f"{self.path.name} has the column {listed(twice)} more than once, so it is not "
                "clear which one is meant. Give each column a name of its own."
            )
        if self._kind == "text":
            self._check_widths(len(names))
        self.check_bins()

    def check_bins(self) -> None:
        """Raise if bins are named for a column that is no attribute."""
        stray = [name for name in self.bins if name not in self.attributes]
        if stray:
            raise ValueError(
                f"--bins names {listed(stray)}, which is not in --sensitive or --control."
            )

    def blocks(self) -> Iterator[pd.DataFrame]:
        """Yield blocks of rows with the columns in use. Attributes are text, or names of bins."""
        start = 0
        self.n_dropped.clear()
        for raw in self._raw_blocks():
            block = raw.reset_index(drop=True)
            if self.needed:
                block = block.dropna(subset=[*self.needed]).infer_objects()
            if self.decimal is not None:
                for name in set(self.used) - set(self._names_only):
                    block[name] = numbers_of(block[name], self.decimal)
            self._set_precision(block)
            for name in self.attributes:
                block[name] = self._groups(block[name], name, start)
            start += len(raw)
            self.n_dropped.append(len(raw) - len(block))
            yield block.reset_index(drop=True)

    def narrow_columns(self) -> dict[str, str]:
        """Return the type of each column in use whose numbers are in single or half precision."""
        if self.precision is not None:  # what a record may say, and nothing else
            numbers = set(self.used) - set(self._names_only)
            own = self.precision.items()
            return {name: kind for name, kind in own if name in numbers and kind in DIGITS}
        if self._kind != "parquet":
            return {}
        kinds = {"float": "float32", "halffloat": "float16"}
        types = {
            field.name: kinds.get(str(field.type)) for field in _parquet(self.path).schema_arrow
        }
        return {name: kind for name in self.used if (kind := types.get(name)) is not None}

    def _set_precision(self, block: pd.DataFrame) -> None:
        """Give numbers the precision that a record says they had."""
        if self.precision is None:
            return
        for name in set(self.used) - set(self._names_only):
            kind = self.precision.get(name, "float64")
            is_number = pd.api.types.is_float_dtype(block[name].dtype)
            if is_number or (kind in DIGITS and pd.api.types.is_numeric_dtype(block[name].dtype)):
                try:
                    block[name] = exactly(block[name], kind)
                except ValueError as error:
                    raise ValueError(
                        f"Column {name!r} of {self.path.name} does not hold {kind}, as it did when "
                        f"the record was made: {error}."
                    ) from error

    def people(self) -> Iterator[tuple[str, pd.Series]]:
        """Yield the columns that are not read and whose names are those of people, by name."""
        unused = [name for name in self.names() if name not in self.used]
        names = [name for name in dict.fromkeys(unused) if may_name_people(name)]
        if names:
            alone = TableFile.of_columns(str(self.path), names, self.encoding)
            blocks = alone._replace(block_rows=self.block_rows)._raw_blocks()
            yield from pd.concat(list(blocks), ignore_index=True).items()  # type: ignore[misc]

    def by_argument(self, block: pd.DataFrame) -> dict[str, Any]:
        """Return the columns of a block by the arguments of :func:`skfair.report.audit`."""
        own: dict[str, Any] = {name: block[column] for name, column in self.named.items()}
        own["sensitive_features"] = block[self.groups]
        return own | ({"control_features": block[self.within]} if self.within else {})

    def levels(self, name: str) -> list[str]:
        """Return the names of the bins of an attribute, such as "under 25", in order."""
        edges, (below, above) = self.bins[name], ("under", "and over")
        if isinstance(edges[0], datetime):
            texts = [str(edge).removesuffix(" 00:00:00") for edge in edges]
            below, above = "before", "or later"
        else:
            texts = [f"{edge:.15g}" for edge in edges]
        between = [f"{low} to {below} {high}" for low, high in pairwise(texts)]
        return [f"{below} {texts[0]}", *between, f"{texts[-1]} {above}"]

    @property
    def _kind(self) -> str:
        """The kind of file: "parquet", "Excel" or "text"."""
        return _KINDS.get(self.path.suffix.lower(), "text")

    def names(self) -> list[str]:
        """Return the columns of the file."""
        if self._kind == "parquet":
            return [str(name) for name in _parquet(self.path).schema_arrow.names]
        if self._kind == "Excel":
            with self._explained():
                return pd.read_excel(self.path, header=None, nrows=1).iloc[0].astype(str).tolist()
        return next(self._texts(), [])

    def _texts(self) -> Iterator[list[str]]:
        """Yield the line of names and then each row, as lists of texts.

        Lines are cut by the csv module, because pandas is slow if there are very many columns.
        """
        with self._explained():
            separator, n_before = self._separator()
            options = {"header": None, "skiprows": n_before, "dtype": str, "chunksize": 10}
            with self._read(**_LINES, **options, keep_default_na=False) as chunks:
                lines = (f"{line}\n" for chunk in chunks for line in chunk[0])
                yield from csv.reader(lines, delimiter=separator, skipinitialspace=True)

    def _separator(self) -> tuple[str, int]:
        """Return the mark that separates values, and the number of lines before the names.

        The mark is the one of ``,``, ``;`` and tab that occurs most often in the first line. If the
        first line is ``sep=;``, as spreadsheets write it, it names the mark, and the names follow.
        """
        (line,) = self._read(**_LINES, nrows=0).columns
        stated = re.fullmatch('"?sep=(.)"?', line)
        unquoted = re.sub('"[^"]*"', "", line)
        return (stated[1], 1) if stated else (max(",;\t", key=unquoted.count), 0)

    def _read(self, **options: object) -> Any:
        """Read the file with pandas.read_csv."""
        return pd.read_csv(self.path, encoding=self.encoding, **options)  # type: ignore[call-overload]

    def _decimal(self, dialect: dict[str, Any]) -> str:
        """Return the decimal mark, as the first 1,000 rows show it.

        It is a comma if some numbers have commas and none has a point. This is for files whose
        values are not separated by commas, if the user has not named the mark.
        """
        few = self._read(**dialect, nrows=1000, dtype=str, usecols=lambda name: name in self.used)
        texts = [value for value in few.to_numpy().ravel() if isinstance(value, str)]
        has_comma, has_point = (
            any(re.fullmatch(rf"[-+]?\d*{mark}\d+", text) for text in texts)
            for mark in (",", r"\.")
        )
        return "," if has_comma and not has_point else "."

    def _check_widths(self, n_names: int) -> None:
        """Raise if rows have more values than the first line has names, unless R wrote them.

        If rows have one value more than there are names, pandas reads the first value as the name
        of the row, as R writes it. With an empty value at the end, each value would be put under
        the name to its left.
        """
        rows = islice(self._texts(), 1, 1001)
        first = next(rows, [])
        if len(first) > n_names and not any(row[-1].strip() for row in (first, *rows) if row):
            raise ValueError(
                f"Rows of {self.path.name} have more values than its first line has names, and the "
                "last ones are empty. Remove the separators at the ends of the rows, or add as "
                "many to the first line."
            )
        if len(first) > n_names + 1:
            raise ValueError(
                f"The first row of {self.path.name} has {len(first)} values, but its first line "
                f"has {n_names} names. Give each column a name."
            )

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Turn errors of readers into messages that say what is wrong with the file."""
        try:
            yield
        except UnicodeError as error:
            known = self.encoding.upper()
            raise ValueError(
                f"{self.path.name} is not {known}. Save it as CSV UTF-8, or name its encoding, for "
                "example --encoding cp1252."
            ) from error
        except (pd.errors.ParserError, pd.errors.EmptyDataError, csv.Error) as error:
            raise ValueError(f"{self.path.name} is no CSV file: {error}.") from error
        except _DAMAGED as error:
            raise ValueError(f"{self.path.name} is damaged: {error}. Copy it again.") from error

    def _raw_blocks(self) -> Iterator[pd.DataFrame]:
        """Yield the rows as the reader of this kind of file returns them."""
        with self._explained():
            if self._kind == "parquet":
                batches = _parquet(self.path).iter_batches(self.block_rows, columns=self.used)
                for batch in batches:
                    # 1 is not to become 1.0
                    block = _with_index(batch.to_pandas(integer_object_nulls=True))
                    if self.labels_are_text:
                        block[self.labels] = block[self.labels].astype(str)
                    yield block
                return
            text = self._names_only
            if self._kind == "Excel":
                types = dict.fromkeys(text, str)
                yield pd.read_excel(self.path, usecols=self.used, dtype=types)
                return
            separator, n_before = self._separator()
            dialect = {"sep": separator, "skiprows": n_before, "skipinitialspace": True}
            yield from self._read(
                **dialect,
                decimal="." if separator == "," else self._decimal(dialect),
                usecols=self.used,
                dtype=dict.fromkeys(text if self.decimal is None else self.used, str),
                chunksize=self.block_rows,
                low_memory=False,
            )

    @property
    def _names_only(self) -> list[str]:
        """The columns that are read as text, even if they look like numbers.

        They are attributes without bins, units, and labels if ``labels_are_text``.
        """
        names = [name for name in self.attributes if name not in self.bins]
        names += self.labels if self.labels_are_text else []
        return names + [own for argument, own in self.named.items() if argument == "units"]

    def as_written(self) -> pd.DataFrame:
        """Return all columns of the file as they stand in it, to which ``decide`` adds its own.

        Names of rows, as R writes them before the first column, are in the column "row.names".
        """
        with self._explained():
            if self._kind == "parquet":
                return _with_index(_parquet(self.path).read().to_pandas())
            options: dict[str, Any] = {"dtype": str, "keep_default_na": False}
            if self._kind == "Excel":
                return pd.DataFrame(pd.read_excel(self.path, **options))
            separator, n_before = self._separator()
            dialect = {"sep": separator, "skiprows": n_before, "skipinitialspace": True}
            frame = pd.DataFrame(self._read(**dialect, **options))
            has_names = len(frame) and not isinstance(frame.index, pd.RangeIndex)
            return frame.reset_index(names="row.names") if has_names else frame

    def _groups(self, values: pd.Series, name: str, start: int) -> pd.Series:
        """Return the group of each row by one attribute: its text, or the name of its bin.

        Rows without a value get the group ``missing``. ``start`` is the number of rows before this
        block, for messages.
        """
        n_missing = int(values.isna().sum())
        if n_missing and self.missing is None:
            row = start + values.index[values.isna()][0] + 1
            raise ValueError(
                f"Column {name!r} has {plural(n_missing, 'missing value')}, the first in data row "
                f"{row}. Drop these rows (--drop-missing groups), or make them a group with "
                "--missing unknown."
            )
        if name not in self.bins:
            return values.astype(str).str.strip().where(values.notna(), self.missing)
        edges, kind = np.array(self.bins[name]), "number"
        if edges.dtype == object:
            kind = "date such as 2026-12-31" if self.date_format is None else "date of this form"
            kind += ". Name the form of the dates, such as --date-format %d.%m.%Y"
            edges, form = edges.astype("datetime64[ns]"), self.date_format or "ISO8601"
            numbers = pd.to_datetime(values, errors="coerce", format=form)
        else:
            kind += " (1.234,5 and 55,5 % are read with --decimal ,)"
            numbers = pd.to_numeric(values, errors="coerce")
        if (numbers.isna() & values.notna()).any():
            bad = values[numbers.isna() & values.notna()].iloc[0]
            raise ValueError(f"Column {name!r} has {bad!r}, which is no {kind}.")
        places = np.searchsorted(edges, numbers.to_numpy(), side="right")
        groups = pd.Series(np.array(self.levels(name), object)[places], values.index)
        return groups.where(values.notna(), self.missing)


def numbers_of(values: pd.Series, decimal: str) -> pd.Series:
    """Return the numbers that a column of text holds, or the column if it holds other text.

    ``decimal`` is the mark before decimals, a comma or a point. Thousands may be separated by a
    space, an apostrophe, or the other mark. ``55%`` is 0.55.
    """
    if not pd.api.types.is_string_dtype(values.dtype):  # numbers and dates
        return values
    if values.isna().all():
        return values.astype(float)
    if not _are_numbers(values, decimal):
        return values
    texts = values.astype(str).str.strip()
    plain = texts.str.replace(r"[\s%']", "", regex=True)
    plain = plain.str.replace(_thousands(decimal), "", regex=False).str.replace(decimal, ".")
    numbers = pd.to_numeric(plain.where(values.notna()))
    is_percent = texts.str.endswith("%")
    return numbers.where(~is_percent, numbers / 100) if is_percent.any() else numbers


def decimal_of(values: pd.Series) -> str | None:
    """Return the decimal mark with which a column of text holds numbers only; None for words.

    ``choose`` asks this to refuse numbers that would be taken for words.
    """
    return next((mark for mark in ",." if _are_numbers(values, mark)), None)


def _are_numbers(values: pd.Series, decimal: str) -> bool:
    texts = values.dropna()
    mark, group = re.escape(decimal), rf"[{re.escape(_thousands(decimal))}\s']"
    whole = rf"\d{{1,3}}(?:{group}\d{{3}})+|\d+"
    number = rf"\s*[-+]?(?:(?:{whole})(?:{mark}\d*)?|{mark}\d+)\s*%?\s*"
    return bool(len(texts)) and bool(texts.map(str).str.fullmatch(number).all())


def _thousands(decimal: str) -> str:
    return "." if decimal == "," else ","


def _check_file(path: Path, encoding: str) -> None:
    """Raise unless the file and the encoding exist, and for spreadsheets that are not read."""
    if not path.is_file():
        raise ValueError(
            f"{str(path)!r} is a folder, a pipe or a device, which cannot be read twice. Write the "
            "rows to a file."
            if path.exists()
            else f"There is no file {str(path)!r}. Check the path."
        )
    with path.open("rb") as file:
        start = file.read(8)
    suffix = path.suffix.lower()
    if suffix in _SPREADSHEETS or (suffix not in (".zip", ".xlsx") and start.startswith(_EXCEL)):
        raise ValueError(
            f"{path.name} is a spreadsheet of another kind. Save it as .xlsx or CSV UTF-8."
        )
    if suffix == ".xlsx" and find_spec("openpyxl") is None:
        raise ValueError(
            "Excel files need openpyxl: pip install openpyxl. Or save the sheet as CSV UTF-8 "
            "(File, Save as)."
        )
    try:
        "".encode(encoding)
    except (LookupError, UnicodeError) as error:
        raise ValueError(
            f"--encoding {encoding!r} is no encoding of text. Common ones are utf-8, "
            "cp1252, latin-1 and utf-16."
        ) from error


def _check_lines(path: Path) -> None:
    """Read the bytes of a file to its end, so that damage is found; raise for an endless line."""
    with _OPENERS.get(path.suffix.lower(), open)(path, "rb") as stream:
        while line := stream.readline(_MOST_BYTES):
            if len(line) == _MOST_BYTES:
                raise ValueError(
                    f"{path.name} has a line of more than {_MOST_BYTES:,} bytes, so it is no "
                    "table. Export it again."
                )


def check_levels(name: str, levels: set[str]) -> None:
    """Raise if an attribute of a file looks continuous, or like an identifier.

    ``levels`` are the values in the blocks that were read so far.
    """
    if len(levels) > MAX_NUMERIC_LEVELS:
        texts = pd.Series(sorted(levels))
        if texts.str.fullmatch(_DATE).all():
            raise ValueError(
                f"Column {name!r} has more than {MAX_NUMERIC_LEVELS} different dates, so it is no "
                "group. Add a column with the year or the quarter, and name that one."
            )
        numbers = pd.to_numeric(texts, errors="coerce")
        if numbers.isna().any():  # commas before decimals, as in 1.234,50
            points = texts.str.replace(".", "", regex=False).str.replace(",", ".")
            numbers = pd.to_numeric(points, errors="coerce")
        if numbers.notna().all():
            edges = ",".join(
                f"{edge:.4g}" for edge in np.unique(numbers.quantile([0.25, 0.5, 0.75]))
            )
            raise ValueError(
                f"Column {name!r} has more than {MAX_NUMERIC_LEVELS} different numbers, so it is "
                f"no group. Make bins of it, for example --bins {quote(f'{name}={edges}')}."
            )
    if len(levels) > MAX_LEVELS:
        raise ValueError(
            f"Column {name!r} has more than {MAX_LEVELS} levels, which looks like an identifier. "
            "Merge levels into groups. If it says whose rows these are, name it as --units."
        )


def read_bins(texts: list[str]) -> dict[str, list[Any]]:
    """Read the edges of bins by attribute: ``age=25,45,65``, ``age=25,5;45,5;65``, or dates."""
    bins = {}
    for text in texts:
        name, _, edges = text.partition("=")
        has_commas = ";" in edges
        parts = edges.replace(",", ".").split(";") if has_commas else edges.split(",")
        numbers = _edges([part.strip() for part in parts if part or not has_commas])
        if not numbers or numbers != sorted(set(numbers)):
            raise ValueError(
                "--bins must be COLUMN=EDGE,EDGE with rising numbers, or dates such as "
                f"hired=2020-01-01,2023-07-01, got {text!r}."
            )
        bins[name.strip()] = numbers
    return bins


def _edges(parts: list[str]) -> list[Any]:
    """Return numbers, or dates. The list is empty if the texts are neither."""
    with suppress(ValueError):
        numbers = [float(part) for part in parts]
        return numbers if np.isfinite(numbers).all() else []
    with suppress(ValueError):
        return [datetime.fromisoformat(part) for part in parts]
    return []


def _with_index(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a frame with its index as a column, if the index was a column with a name."""
    return frame.reset_index() if any(name is not None for name in frame.index.names) else frame


def _parquet(path: Path):  # type: ignore[no-untyped-def]
    """Open a parquet file."""
    try:
        from pyarrow import ArrowException
        from pyarrow.parquet import ParquetFile
    except ImportError as error:
        raise ImportError("Parquet files need pyarrow: pip install pyarrow.") from error
    try:
        return ParquetFile(path)
    except (ArrowException, OSError) as error:
        raise ValueError(f"{path.name} is no parquet file: {error}.") from error
