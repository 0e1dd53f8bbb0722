"""
The same estimators on a cluster
================================

The rows are in partitions on the worker processes of a small Dask cluster. They are simulated there
and stay there, if they are more than 128 MB. A classifier and a clustering are fitted to them, and
predictions are evaluated where the rows are. This process receives sums and what has one entry for
each row, such as groups and labels.
"""

# %%
# Rows that are computed later
# ----------------------------
# A function simulates one partition. Dask calls it on the workers when rows are needed. For files,
# use ``dask.dataframe.read_parquet`` instead. Groups are strings.
import dask
import dask.dataframe as dd
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from distributed import Client, LocalCluster

from skfair.classification import ConstrainedERMClassifier
from skfair.cluster import FairKMeans
from skfair.metrics import balance_score, fairness_report, group_report

N_PARTITIONS, PARTITION_ROWS = 12, 20_000
COLUMNS = [f"x{j}" for j in range(6)]
REGIONS = np.array(["north", "south", "west"])


def draw(number, n_rows=PARTITION_ROWS):
    """Draw the rows of one partition."""
    rng = np.random.default_rng([0, number])
    code = rng.choice(3, n_rows, p=[0.5, 0.3, 0.2])
    X = rng.standard_normal((n_rows, len(COLUMNS)), dtype=np.float32)
    X[:, 0] += np.float32(0.8) * code
    X[:, 4:] += 4 * rng.integers(0, 2, (n_rows, 2)).astype(np.float32)  # four heaps
    granted = X[:, 0] - X[:, 1] + rng.logistic(size=n_rows) > 1
    table = pd.DataFrame(X, columns=COLUMNS)
    return table.assign(region=pd.array(REGIONS[code], dtype="string"), granted=granted.astype(int))


def lazy_table(n_partitions):
    """Return a frame of which nothing is drawn yet."""
    return dd.from_map(draw, range(n_partitions), meta=draw(0, n_rows=0))


# %%
# Two workers
# -----------
# Workers are separate processes, which import this script when they start. So the code that only
# this process should run is behind ``if __name__ == "__main__"``. Passes are faster if workers keep
# the memory that they will need again; this is set before they start. ``persist`` computes the rows
# and keeps them on the workers.
if __name__ == "__main__":
    dask.config.set({"distributed.nanny.pre-spawn-environ.MALLOC_TRIM_THRESHOLD_": 2**26})
    cluster = LocalCluster(
        n_workers=2, threads_per_worker=1, memory_limit="1.5GiB", dashboard_address=":0"
    )
    client = Client(cluster)
    table = lazy_table(N_PARTITIONS).persist()
    X, granted, region = table[COLUMNS], table["granted"], table["region"]
    print(
        f"{len(table)} rows in {table.npartitions} partitions, on {len(client.nthreads())} workers"
    )

# %%
# A classifier within a limit
# ---------------------------
# The calls are the same as for rows in memory. Predictions are a Dask array, which is computed when
# a report needs it.
if __name__ == "__main__":
    reports = {}
    for bound in (1.0, 0.02):
        model = ConstrainedERMClassifier("demographic_parity", max_disparity=bound)
        model = model.fit(X, granted, sensitive_features=region)
        predicted = model.predict(X)
        reports[bound] = group_report(granted, predicted, sensitive_features=region, method=None)
        print(f"bound {bound}: disparity {model.train_disparity_:.4f}")
    print(reports[0.02][["n", "base_rate", "selection_rate", "accuracy"]])
    report = fairness_report(granted, predicted, sensitive_features=region, random_state=0)
    print(report.loc[["demographic_parity_difference", "equal_opportunity_difference"]])

    before, after = (
        reports[bound].loc[list(REGIONS), "selection_rate"].astype(float) for bound in (1.0, 0.02)
    )
    figure, ax = plt.subplots(figsize=(5, 3.75), layout="constrained")
    ax.hlines(REGIONS, before, after, color="0.8", lw=4, zorder=0)
    ax.plot(before, REGIONS, "o", color="C0", markerfacecolor="white", label="no limit")
    ax.plot(after, REGIONS, "o", color="C0", label="within 2 points")
    ax.set_title(f"{len(table):,} rows on two workers,\nregions at most 2 points apart")
    ax.set(xlabel="selection rate", xlim=(0, None))
    ax.margins(y=0.2)
    ax.legend(loc="lower right")

# %%
# A clustering
# ------------
# Labels are an ordinary array, and the same as for rows in memory.
if __name__ == "__main__":
    clusters = FairKMeans(8, min_balance=0.8, random_state=0)
    clusters.fit(X, sensitive_features=region)
    balance = balance_score(clusters.labels_, sensitive_features=region, relative=True)
    print(f"balance {balance:.3f} of that of the rows")
    print(clusters.group_counts_)
    client.close()
    cluster.close()
