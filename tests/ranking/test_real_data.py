"""Every solver of a ranker on data of communities: what the attributes say is so."""

import numpy as np
import pandas as pd
import pytest
from sklearn.preprocessing import StandardScaler

from skfair.datasets import load_local
from skfair.ranking import FairRanker
from tests.naive import ranking
from tests.registries import SOLVERS
from tests.solvers import test_every_solver_on_real_data as real

pytestmark = real.pytestmark
# What problems lack, so that solvers that need it are refused.
LACKING = {"hessian"}
WITHIN = [name for name in SOLVERS if not LACKING & set(SOLVERS[name].needs)]


def states(n_states=6):
    """Communities of some states: columns, thirds of the crime rate, state, group."""
    data = load_local("communities_crime")
    table = data.frame[
        data.frame["state"].isin(data.frame["state"].value_counts().index[:n_states])
    ]
    columns = data.data.loc[table.index].dropna(axis=1)
    X = StandardScaler().fit_transform(columns.select_dtypes("number"))[:, :30]
    grades = np.digitize(data.target.loc[table.index], [0.1, 0.3])
    group = data.sensitive_features["black_median"].loc[table.index].to_numpy(str)
    state = table["state"].to_numpy()
    kept = np.flatnonzero(pd.Series(state).groupby(state).cumcount() < 40)
    return X[kept], grades[kept], state[kept], group[kept]


@real.each(SOLVERS, WITHIN)
def test_disparities_of_queries_are_those_of_all_pairs(solver):
    """Section D.3 of plada: errors on pairs of either direction, for each query."""
    X, y, query, group = states()
    model = FairRanker(0.15, solver=solver, query_share=None, max_iter=300, random_state=0)
    real.quietly(model, X, y, query, sensitive_features=group)
    scores = model.predict(X)
    gaps = np.array(ranking.pair_error_gaps(y, scores, query, group), dtype=float)
    np.testing.assert_allclose(model.disparity_by_query_, gaps, atol=1e-12)
    assert model.train_disparity_ == pytest.approx(np.nanmax(gaps), abs=1e-12)
    within = np.mean(gaps[np.isfinite(gaps)] <= 0.15 + 1e-9)
    assert model.share_within_ == pytest.approx(within, abs=1e-12)
    errors = [
        ranking.pair_error_rate(y, scores, rows, rows, rows)
        for rows in (ranking.rows_of(query, name) for name in np.unique(query))
    ]
    assert np.mean(errors) < 0.5  # of constant scores


@pytest.mark.parametrize("solver", [name for name in SOLVERS if name not in WITHIN])
def test_a_solver_that_needs_what_problems_lack_is_refused(solver):
    X, y, query, group = states()
    with pytest.raises(TypeError, match="cannot solve"):
        real.quietly(FairRanker(solver=solver), X, y, query, sensitive_features=group)
