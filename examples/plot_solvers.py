"""
Four solvers on one problem
===========================

The smooth problem behind ``ConstrainedERMClassifier`` can be solved in many ways. Two solvers of
this package and two of the papers start from the same point. A step of one costs more than a
step of another, so the pictures count passes over the rows.
"""

import warnings

import matplotlib.pyplot as plt
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import StandardScaler

from skfair.classification import ConstrainedERMClassifier
from skfair.datasets import make_loans
from skfair.inspection import ConvergenceDisplay

X, y, people = make_loans(5000, bias=2.0, missing_rate=0.0, random_state=0)
X = StandardScaler().fit_transform(X.select_dtypes("number"))

figure, axes = plt.subplots(2, 1, figsize=(5.6, 4.8), sharex=True, layout="constrained")
for solver in ("al_newton", "al_lbfgs", "plada", "alm"):
    model = ConstrainedERMClassifier(
        max_disparity=0.05, solver=solver, enforce="surrogate", max_iter=200, random_state=0
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the slow ones are cut off on purpose
        model.fit(X, y, sensitive_features=people["sex"])
    display = ConvergenceDisplay.from_estimator(model, name=solver)
    plt.close(display.figure_)
    display.plot(x="passes", ax=axes)
    objective, violation = (model.history_[c][-1] for c in ("objective", "max_violation"))
    print(f"{solver:<10} objective {objective:.4f}, violation {violation:.1e}")
axes[0].set(xscale="log", ylim=(None, 0.75))
