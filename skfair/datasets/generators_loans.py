"""Loan applications whose unfairness is known, because it is a parameter.

``make_loans`` draws a table like a real one (numbers, words, missing values, two sensitive
attributes), in which the bias is a parameter. As in reality, bias has two effects. It changes the
features (lower incomes, fewer home owners), so leaving out the sensitive columns does not help. And
the decision itself requires more of some groups.

The random numbers do not depend on the bias, which is applied to them afterwards. So two tables
with one seed and different biases describe the same people, and a larger bias can only turn grants
into refusals.
"""

import math
from collections.abc import Mapping
from numbers import Integral, Real
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval

from skfair._typing import FloatArray
from skfair.datasets._packing import Sample, checks, split_counts

if TYPE_CHECKING:
    import pandas as pd


# Attribute -> level -> (default share of the rows, factor of the bias against this level).
_LEVELS: dict[str, dict[str, tuple[float, float]]] = {
    "sex": {"female": (0.45, 1.0), "male": (0.55, 0.0)},
    "ethnicity": {"A": (0.7, 0.0), "B": (0.2, 0.7), "C": (0.1, 1.0)},
}

# Columns with missing values. The purpose, the amount and the age are never missing.
_INCOMPLETE = ("income", "employment_years", "credit_history", "housing")


@checks(
    {
        "n_samples": [Interval(Integral, 1, None, closed="left")],
        "bias": [Interval(Real, 0, None, closed="left")],
        "group_shares": [Mapping, None],
        "missing_rate": [Interval(Real, 0, 1, closed="left")],
        "random_state": ["random_state"],
    },
)
def make_loans(
    n_samples: int = 1000,
    *,
    bias: float = 1.0,
    group_shares: Mapping[str, Mapping[str, float]] | None = None,
    missing_rate: float = 0.05,
    random_state: int | np.random.RandomState | None = None,
) -> Sample:
    """Generate loan applications with a known bias against some groups.

    The same random numbers are drawn for every ``bias``, so two tables with one seed and different
    biases describe the same people, and a larger bias only turns grants into refusals.

    Parameters
    ----------
    n_samples : int, default=1000
        Number of applications.
    bias : float, default=1.0
        Strength of the bias against women and against the ethnic groups B and (more strongly) C. If
        it is 0, sex and ethnicity have no influence. If it is 1, the rate of granted loans is about
        0.2 lower for women than for men, and if it is 2, about 0.35 lower.
    group_shares : dict or None, default=None
        Shares of the groups, as ``{"sex": {"female": 0.45, "male": 0.55}, "ethnicity": {"A": 0.7,
        "B": 0.2, "C": 0.1}}`` (the default). An attribute that is left out keeps its default, and a
        level that is left out has the share 0. The shares of an attribute must sum to 1. They hold
        exactly, up to one row, and the two attributes are independent.
    missing_rate : float, default=0.05
        Share of missing cells, at least 0 and below 1, in each of the columns income,
        employment_years, credit_history and housing, at random rows. The sensitive columns and
        the target are complete.
    random_state : int, RandomState instance or None, default=None
        Seed of the random numbers. The same integer gives the same applicants, also for another
        bias.

    Returns
    -------
    data : DataFrame of shape (n_samples, 9)
        The applications. The columns are age (years), income, loan_amount (thousands),
        employment_years, credit_history ("good", "short", "late payments"), housing ("own", "rent",
        "family"), purpose ("car", "home", "business", "education"), sex ("female", "male") and
        ethnicity ("A", "B", "C").
    target : Series of shape (n_samples,)
        The series ``granted``, which is 1 for a granted loan and 0 for a refusal.
    sensitive_features : DataFrame of shape (n_samples, 2)
        The columns sex and ethnicity of ``data``.

    See Also
    --------
    make_group_scores : Generate scores with a known distribution in each group.

    Notes
    -----
    The decision follows a logistic model in log income, the amount asked for relative to the
    income, employment, credit history and housing. A logistic regression on the encoded columns
    reaches an accuracy of about 0.8. This is close to the best possible accuracy, since decisions
    are partly random.

    Examples
    --------
    >>> from skfair.datasets import make_loans
    >>> loans = make_loans(2000, random_state=0)
    >>> loans.data.shape
    (2000, 9)
    >>> rates = loans.target.groupby(loans.sensitive_features["sex"]).mean()
    >>> print(f"{rates['male'] - rates['female']:.2f}")
    0.20
    """
    import pandas as pd

    n_samples = int(n_samples)  # True passes the check as 1, but numpy raises for it
    rng = check_random_state(random_state)
    shares = _check_group_shares(group_shares)
    sensitive = pd.DataFrame(
        {name: _draw_levels(n_samples, levels, rng) for name, levels in shares.items()}
    )
    # The factor of the bias against each person, by attribute
    burden = {
        name: sensitive[name].map({level: w for level, (_, w) in levels.items()}).to_numpy(float)
        for name, levels in _LEVELS.items()
    }
    data, merit = _applications(n_samples, bias * (burden["sex"] + burden["ethnicity"]), rng)
    # A loan is granted if merit plus a random number exceeds the penalty of the person's groups.
    chance = rng.logistic(scale=0.7, size=n_samples)
    penalty = 0.8 * bias * (burden["sex"] + burden["ethnicity"])
    target = pd.Series((merit + chance > penalty).astype(np.int64), name="granted")
    for column in _INCOMPLETE:
        blank = rng.permutation(n_samples)[: round(missing_rate * n_samples)]
        data.loc[blank, column] = np.nan
    data = pd.concat([data, sensitive], axis=1)
    return Sample(data, target, sensitive)


def _check_group_shares(
    group_shares: Mapping[str, Mapping[str, float]] | None,
) -> dict[str, dict[str, float]]:
    """Return the share of each level by attribute, with defaults for attributes not given."""
    shares = {} if group_shares is None else dict(group_shares)
    unknown = [name for name in shares if name not in _LEVELS]
    if unknown:
        raise ValueError(
            f"group_shares names the attribute {unknown[0]!r}, which make_loans does not have. "
            f"Use {' and '.join(map(repr, _LEVELS))}."
        )
    return {
        name: _check_shares(name, shares[name], list(levels))
        if name in shares
        else {level: share for level, (share, _) in levels.items()}
        for name, levels in _LEVELS.items()
    }


def _check_shares(name: str, shares: Mapping[str, float], levels: list[str]) -> dict[str, float]:
    """Return the share of each level, after checking that they are shares."""
    where = f"group_shares[{name!r}]={shares!r}"
    if not isinstance(shares, Mapping):
        raise ValueError(f"{where} is no dict. Pass the share of each level of {levels}.")
    unknown = [level for level in shares if level not in levels]
    if unknown:
        raise ValueError(f"{where} names the level {unknown[0]!r}. The levels are {levels}.")
    total = sum(shares.values())
    if any(share < 0 for share in shares.values()) or not math.isclose(total, 1, abs_tol=1e-6):
        raise ValueError(
            f"{where} are no shares: they sum to {total:.4g}. Pass numbers from 0 to 1 that sum "
            "to 1."
        )
    return {level: shares.get(level, 0.0) / total for level in levels}


def _draw_levels(
    n: int, shares: dict[str, float], rng: np.random.RandomState
) -> npt.NDArray[np.object_]:
    """Return exactly the asked share of each level, in random order."""
    counts = split_counts(n, list(shares.values()))
    names = np.array(list(shares), dtype=object)
    return np.asarray(rng.permutation(np.repeat(names, counts)))


def _applications(
    n: int, burden: FloatArray, rng: np.random.RandomState
) -> tuple["pd.DataFrame", FloatArray]:
    """Return the application forms, and the merit of each.

    Without bias and luck, a loan is granted if the merit is above 0. ``burden`` is the bias times
    the factors of each person's groups. It lowers the income and makes owning a home less likely,
    and merit is computed from these.
    """
    import pandas as pd

    age = np.clip(rng.normal(40, 12, n), 18, 75).round()
    employment = np.minimum(rng.gamma(2.0, 4.0, n), age - 18).round(1)
    log_income = 3.5 + 0.02 * np.minimum(employment, 20) + rng.normal(0, 0.4, n)
    log_income -= 0.1 * burden

    names = np.array(["car", "home", "business", "education"], dtype=object)
    purpose = rng.choice(len(names), size=n, p=[0.35, 0.25, 0.2, 0.2])
    typical = np.array([14.0, 60.0, 30.0, 9.0])  # thousands
    log_amount = np.log(typical[purpose]) + 0.5 * (log_income - 3.7) + rng.normal(0, 0.5, n)

    reliability = rng.normal(0, 1, n)
    late, short = reliability < -0.8, (reliability >= -0.8) & (reliability < -0.2)
    history = np.select([late, short], ["late payments", "short"], "good").astype(object)

    wealth = 1.5 * (log_income - 3.7) + 0.04 * (age - 40) - 0.5 * burden
    wealth += rng.logistic(size=n)
    owns, rents = wealth > 0.3, rng.random_sample(n) < 0.8
    housing = np.select([owns, rents], ["own", "rent"], "family").astype(object)

    merit = 0.5 + 2.0 * (log_income - 3.7) - 1.0 * (log_amount - log_income + 0.7)
    merit += 0.8 * (history == "good") - 1.8 * late + 0.7 * owns + 0.05 * (employment - 8)
    data = pd.DataFrame(
        {
            "age": age.astype(np.int64),
            "income": np.exp(log_income).round(1),
            "loan_amount": np.exp(log_amount).round(1),
            "employment_years": employment,
            "credit_history": history,
            "housing": housing,
            "purpose": names[purpose],
        }
    )
    return data, merit
