"""``python -m skfair data``: which data sets there are, and one of them as a file."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pandas as pd

from skfair.datasets import load_local, make_loans
from skfair.datasets.local import local_datasets
from skfair.utils.files import replacing

_SIMULATED = "loans"
_N_ROWS = 5000


def run_data(name: str | None, out: str | None) -> int:
    """List the data sets, or write one."""
    local = local_datasets() if os.environ.get("SKFAIR_DATA") else []
    if name is None:
        lines = [f"{_SIMULATED}: simulated loan applications ({_N_ROWS} rows)"]
        lines += [f"{local_name}: in the folder SKFAIR_DATA" for local_name in local]
        if not local:
            lines.append("Set SKFAIR_DATA to a folder with datasets.json to see your own.")
        sys.stdout.write("\n".join(lines) + "\n")
        return 0
    if name not in (_SIMULATED, *local):
        raise ValueError(
            f"There is no data set {name!r}. There are {', '.join([_SIMULATED, *local])}."
        )
    if out is None:
        raise ValueError(f"Name a file to write: python -m skfair data {name} --out {name}.csv")
    if Path(out).suffix not in (".csv", ".parquet"):
        raise ValueError(f"--out must end in .csv or .parquet, got {out!r}.")
    _spare_input(out)
    dataset = make_loans(_N_ROWS, random_state=0) if name == _SIMULATED else load_local(name)
    frame = _table(dataset)
    with replacing(out) as beside:
        write = frame.to_parquet if beside.suffix == ".parquet" else frame.to_csv
        write(beside, index=False)
    columns = ", ".join(str(column) for column in frame.columns)
    sys.stdout.write(f"{out}: {len(frame)} rows with the columns {columns}\n")
    return 0


def _spare_input(out: str) -> None:
    """Raise if a file to write would replace one of the folder that data sets are read from."""
    folder = os.environ.get("SKFAIR_DATA")
    if folder and os.path.exists(out) and Path(folder).resolve() in Path(out).resolve().parents:
        raise ValueError(f"--out {out!r} is a file of the folder SKFAIR_DATA. Name another one.")


def _table(dataset: Any) -> pd.DataFrame:
    """Put features, target and groups of a data set side by side, each column once."""
    data = pd.DataFrame(dataset.data).reset_index(drop=True)
    groups = pd.DataFrame(dataset.sensitive_features).reset_index(drop=True)
    new = groups[[name for name in groups.columns if name not in data.columns]]
    table = pd.concat([data, new], axis=1)
    target = dataset.target
    if target is None:
        return table
    target = pd.Series(target, name="target").reset_index(drop=True)
    return pd.concat([table, target], axis=1)
