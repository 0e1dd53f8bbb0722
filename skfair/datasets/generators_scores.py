"""Scores with a known distribution in each group, to test score metrics and post-processing.

``make_group_scores`` draws normal scores, with a normal distribution for each group. Distances
between such groups (Wasserstein, Kolmogorov-Smirnov) have formulas, so a metric of the sample can
be compared with its value in the population. Labels follow the logistic function of the score, with
the same curve in every group.
"""

import math
from collections.abc import Mapping, Sequence
from numbers import Integral
from typing import Any

import numpy as np
from scipy.special import expit
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval

from skfair.datasets._packing import ScoredSample, checks, split_counts
from skfair.utils.validation import check_numbers


@checks(
    {
        "n_samples": [Interval(Integral, 1, None, closed="left")],
        "distributions": [Mapping, None],
        "group_shares": ["array-like", None],
        "random_state": ["random_state"],
    },
)
def make_group_scores(
    n_samples: int = 1000,
    *,
    distributions: Mapping[Any, tuple[float, float]] | None = None,
    group_shares: Sequence[float] | None = None,
    random_state: int | np.random.RandomState | None = None,
) -> ScoredSample:
    r"""Generate scores that are normal in each group, with labels that fit the scores.

    The score of a member of group g is normal with mean :math:`\mu_g` and standard deviation
    :math:`\sigma_g`. The label is 1 with probability :math:`1 / (1 + e^{-\text{score}})` in every
    group. The scores are therefore calibrated logits, and groups differ only in their scores.

    Parameters
    ----------
    n_samples : int, default=1000
        Number of scores.
    distributions : dict or None, default=None
        Mean and standard deviation of the scores of each group, as a dict from group names to
        pairs. If None, ``{"a": (0.5, 1.0), "b": (-0.5, 1.0)}`` is used.
    group_shares : sequence of floats or None, default=None
        Share of each group in the order of ``distributions``. The shares must sum to 1, and they
        hold exactly, up to one row. If None, the groups are equally large.
    random_state : int, RandomState instance or None, default=None
        Seed of the random numbers. The same integer gives the same scores.

    Returns
    -------
    target : ndarray of shape (n_samples,)
        The labels 0 and 1.
    scores : ndarray of shape (n_samples,)
        The scores on the logit scale.
    sensitive_features : ndarray of shape (n_samples,)
        The group name of each row, in random order.

    See Also
    --------
    make_loans : Generate a table of loan applications with a known bias.

    Notes
    -----
    For two groups put :math:`\Delta = \mu_1 - \mu_2`, :math:`s = \sigma_1 - \sigma_2`, and
    :math:`\Phi` for the standard normal distribution function. Then

    - Wasserstein distance of order 2: :math:`\sqrt{\Delta^2 + s^2}`;
    - Wasserstein distance of order 1 (the area between the two distribution functions):
      :math:`|\Delta|` when :math:`s = 0`, otherwise
      :math:`|s| \sqrt{2/\pi}\, e^{-\Delta^2 / (2 s^2)} + \Delta\,(1 - 2 \Phi(-\Delta/|s|))`;
    - Kolmogorov-Smirnov gap (the largest difference of the rates above one threshold):
      :math:`2 \Phi(|\Delta| / (2 \sigma)) - 1` when both standard deviations are
      :math:`\sigma`, reached at the threshold :math:`(\mu_1 + \mu_2) / 2`. When they differ it
      is reached where the two densities cross.

    In a sample, the Kolmogorov-Smirnov gap deviates from this value. If both distributions are
    equal, it is about :math:`0.85 \sqrt{1/n_1 + 1/n_2}` on average instead of 0. If they differ, it
    deviates by less on average, in both directions but more often upwards.

    Examples
    --------
    >>> import numpy as np
    >>> from skfair.datasets import make_group_scores
    >>> y_true, y_score, groups = make_group_scores(1000, random_state=0)
    >>> np.unique(groups, return_counts=True)[1].tolist()
    [500, 500]
    >>> gap = y_score[groups == "a"].mean() - y_score[groups == "b"].mean()
    >>> print(f"{gap:.1f}")
    1.0
    """
    default = {"a": (0.5, 1.0), "b": (-0.5, 1.0)}
    laws = _check_distributions(default if distributions is None else distributions)
    shares = _check_shares(group_shares, len(laws))
    n_samples = int(n_samples)  # True passes the check as 1, but numpy refuses it
    rng = check_random_state(random_state)
    code = rng.permutation(np.repeat(np.arange(len(laws)), split_counts(n_samples, shares)))
    mean, deviation = np.array(list(laws.values()), dtype=np.float64).T
    y_score = rng.normal(mean[code], deviation[code])
    y_true = (rng.random_sample(n_samples) < expit(y_score)).astype(np.int64)
    return ScoredSample(y_true, y_score, np.asarray(list(laws))[code])


def _check_distributions(
    distributions: Mapping[Any, tuple[float, float]],
) -> dict[Any, tuple[float, float]]:
    """Return the (mean, standard deviation) of every group as two floats."""
    if not distributions:
        raise ValueError(
            "distributions names no group. Pass a dict such as {'a': (0.5, 1.0), 'b': (-0.5, 1.0)}."
        )
    laws = {}
    for group, law in distributions.items():
        try:
            mean, deviation = (float(number) for number in law)
        except (TypeError, ValueError):
            mean = deviation = math.nan
        if not (math.isfinite(mean) and math.isfinite(deviation) and deviation > 0):
            raise ValueError(
                f"distributions[{group!r}]={law!r} is no normal distribution. Pass (mean, "
                "standard deviation): two finite numbers, the second above 0."
            )
        laws[group] = (mean, deviation)
    return laws


def _check_shares(group_shares: Sequence[float] | None, n_groups: int) -> list[float]:
    """Return one share per group, summing to 1; equal shares if ``group_shares`` is None."""
    if group_shares is None:
        return [1 / n_groups] * n_groups
    shares = check_numbers(group_shares, "group_shares")
    is_whole = math.isclose(shares.sum(), 1, abs_tol=1e-6)
    if shares.shape != (n_groups,) or (shares < 0).any() or not is_whole:
        raise ValueError(
            f"group_shares={group_shares!r} does not fit: distributions names {n_groups} "
            "group(s). Pass one share from 0 to 1 per group, summing to 1."
        )
    normalised: list[float] = (shares / shares.sum()).tolist()
    return normalised
