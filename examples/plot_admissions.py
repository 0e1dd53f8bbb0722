"""
Admission: fair where the threshold moves
=========================================

A college admits about a third of its applicants by a score. The exact number depends on the year,
so applicants between the best 20% and the best half may be admitted or not. In this range the
score should treat applicants of two kinds of schools alike.
"""

# %%
# Applicants
# ----------
# Two of five applicants come from academies, which train for the test and pay for activities. Past
# committees used the test, the grades and the activities, and in addition preferred academies. The
# kind of school is not one of the features.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LogisticRegression

from skfair.classification import PartialParityClassifier
from skfair.inspection import CCDFCurveDisplay, GroupScoreDisplay
from skfair.metrics import partial_statistical_parity_gap

INTERVAL = (0.2, 0.5)


def applicants(n_samples, seed):
    """Draw features, past decisions and kinds of schools."""
    rng = np.random.default_rng(seed)
    school = rng.choice(["academy", "district"], n_samples, p=[0.4, 0.6])
    is_academy = school == "academy"
    talent = rng.normal(size=n_samples)
    grades = talent + rng.normal(0, 0.8, n_samples)
    test = talent + 0.5 * is_academy + rng.normal(0, 0.6, n_samples)
    activities = rng.normal(0.6 * is_academy, 1.0)
    essay = 0.5 * talent + rng.normal(size=n_samples)
    liking = grades + test + 0.5 * activities + 0.3 * essay + 0.4 * is_academy
    admitted = liking + rng.logistic(0, 0.8, n_samples) > 1.6
    return np.column_stack([grades, test, activities, essay]), admitted, school


X, y, school = applicants(6000, seed=0)
X_new, y_new, school_new = applicants(6000, seed=1)


def disparity(scores, school):
    """Measure what is limited: Definition 4.2 on the interval."""
    return partial_statistical_parity_gap(
        None, scores, sensitive_features=school, interval=INTERVAL
    )


# %%
# Before
# ------
# The shaded parts are the scores of the applicants whose rank in their own group is in the
# interval. To admit a third of each group, the two groups would need very different thresholds.
plain = LogisticRegression().fit(X, y)
display = GroupScoreDisplay.from_estimator(
    plain, X, sensitive_features=school, interval=INTERVAL, layout="rows"
)

# %%
# Limits, blind and aware
# -----------------------
# A blind model uses the kind of school only in training. An aware model uses it for each applicant,
# which costs less accuracy but may be unlawful. Both keep the limit on the training rows; on other
# rows there is noise. The noise floor is the mean disparity that chance alone produces. There is a
# warning if the limit is below it.
models = {"no rule": plain}
for limit in (0.2, 0.1):
    for kind, aware in (("blind", False), ("aware", True)):
        model = PartialParityClassifier(INTERVAL, max_disparity=limit, group_aware=aware)
        models[f"{kind}, {limit}"] = model.fit(X, y, sensitive_features=school)


def scores_of(model, X, school):
    """Return scores, handing over the group only where the model asks for it."""
    if getattr(model, "is_group_aware_", False):
        return model.decision_function(X, sensitive_features=school)
    return model.decision_function(X)


print(f"{'':<14}disparity: fit    new   accuracy, new   admitted: academy  district")
for name, model in models.items():
    scores = scores_of(model, X_new, school_new)
    rates = [np.mean(scores[school_new == kind] > 0) for kind in ("academy", "district")]
    print(
        f"{name:<14}{disparity(scores_of(model, X, school), school):14.3f}"
        f"{disparity(scores, school_new):7.3f}{np.mean((scores > 0) == y_new):16.3f}"
        f"{rates[0]:20.2f}{rates[1]:10.2f}"
    )
print(f"noise floor: {models['aware, 0.1'].noise_floor_:.3f}")

# %%
# All thresholds at once
# ----------------------
# Each point of a curve is a threshold. The diagonal is parity. The rule limits the distance from it
# in the square where the bands cross, and nowhere else.
figure, axes = plt.subplots(1, 2, figsize=(11, 5.4), layout="constrained")
for ax, kind in zip(axes, ("blind", "aware"), strict=True):
    for name in ("no rule", f"{kind}, 0.2", f"{kind}, 0.1"):
        CCDFCurveDisplay.from_predictions(
            None,
            scores_of(models[name], X_new, school_new),
            sensitive_features=school_new,
            reference="academy",
            interval=INTERVAL,
            name=name,
            ax=ax,
        )
    ax.set_title(f"{kind}, new applicants")

# %%
# The scores themselves
# ---------------------
# The smaller the limit, the more similar are the shaded parts. The blind model moves all scores,
# because it cannot distinguish the groups. The aware model changes only scores in the interval.
names = ("blind, 0.2", "aware, 0.2", "blind, 0.1", "aware, 0.1")
figure, axes = plt.subplots(2, 2, figsize=(11, 7), layout="constrained")
for ax, name in zip(axes.ravel(), names, strict=True):
    GroupScoreDisplay.from_predictions(
        None,
        scores_of(models[name], X_new, school_new),
        sensitive_features=school_new,
        interval=INTERVAL,
        ax=ax,
    )
    ax.set_title(name)

# %%
# What repair does
# ----------------
# The map of each group is monotone, so the order within a group does not change. Beyond its
# outermost knots it only shifts scores. The knots are in ``calibration_``.
maps = models["aware, 0.1"].calibration_
figure, ax = plt.subplots(figsize=(6, 4), layout="constrained")
for kind, before, after in zip(("academy", "district"), maps.before, maps.after, strict=True):
    ax.plot(before, after, "-" if kind == "academy" else "--", label=kind)
ax.axhline(0, color="0.5", lw=1)
ax.set_xlabel("Score by the weights")
ax.set_ylabel("Score after the map (0 decides)")
ax.legend()
