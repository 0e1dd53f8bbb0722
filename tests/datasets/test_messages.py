"""What the data sets say of arguments that cannot be used."""

import numpy as np

from skfair.datasets import (
    fetch_adult,
    fetch_bank,
    load_local,
    make_group_scores,
    make_loans,
)
from tests.messages import messages
from tests.registries import local_datasets


def scores(group, law):
    return make_group_scores(distributions={group: law})


def shares(**given):
    return make_loans(group_shares=given)


LAW = "is no normal distribution"
SHARES = r"does not fit: distributions names 2 group\(s\)"

test_wrong_arguments_are_named = messages(
    # Checked as scikit-learn checks its own.
    (ValueError, "'bias' parameter of make_loans", lambda: make_loans(bias=-1)),
    (ValueError, "'missing_rate' parameter of make_loans", lambda: make_loans(missing_rate=1.0)),
    (ValueError, "'n_samples' parameter of make_loans", lambda: make_loans(n_samples=0)),
    (ValueError, "'n_samples' parameter of make_group_scores", lambda: make_group_scores(0)),
    (ValueError, "'data_home' parameter of fetch_adult", lambda: fetch_adult(data_home=3)),
    (ValueError, "'cache' parameter of fetch_bank", lambda: fetch_bank(cache="yes")),
    (ValueError, "'return_X_y' parameter of", lambda: fetch_bank(return_X_y=None)),
    (ValueError, "'name' parameter of load_local", lambda: load_local(3, "")),
    (ValueError, "'folder' parameter of local_datasets", lambda: local_datasets(3)),
    (FileNotFoundError, "folder is ''", lambda: local_datasets("")),
    # Shares of groups.
    (ValueError, "the attribute 'age', which make_loans does not", lambda: shares(age={"o": 1})),
    (ValueError, "names the level 'other'. The levels are", lambda: shares(sex={"other": 1.0})),
    (ValueError, "sum to 1.1", lambda: shares(sex={"female": 0.5, "male": 0.6})),
    (ValueError, "are no shares", lambda: shares(sex={"female": -0.5, "male": 1.5})),
    (ValueError, "is no dict", lambda: shares(sex=[0.5, 0.5])),
    (ValueError, SHARES, lambda: make_group_scores(group_shares=[1.0])),
    (ValueError, SHARES, lambda: make_group_scores(group_shares=[0.5, 0.6])),
    (ValueError, SHARES, lambda: make_group_scores(group_shares=[-0.5, 1.5])),
    (ValueError, SHARES, lambda: make_group_scores(group_shares=[[0.5, 0.5]])),
    # Distributions of scores.
    (ValueError, "names no group", lambda: make_group_scores(distributions={})),
    (ValueError, rf"\['a'\]=\(0, 0\) {LAW}", lambda: scores("a", (0, 0))),
    (ValueError, "two finite numbers, the second above 0", lambda: scores("a", (np.nan, 1))),
    (ValueError, rf"distributions\['a'\]=3 {LAW}", lambda: scores("a", 3)),
    (ValueError, LAW, lambda: scores("a", (0, 1, 2))),
    (ValueError, LAW, lambda: scores("a", ("low", 1))),
)
