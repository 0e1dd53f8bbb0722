"""
Patients who come back: count people, not visits
================================================

A hospital offers a care programme to patients with a high risk of coming back, and wants to know
whether women and men are treated alike. Each patient has many visits, and visits of the same
patient are alike. ``units=`` of the audit and of ``fit`` says whose visits they are.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LogisticRegression

from skfair.classification import FairDecisionClassifier
from skfair.metrics import demographic_parity_difference, disparity_upper_bound


def visits(n_patients, per_patient, seed):
    """Draw the visits of patients; men are ill more often."""
    rng = np.random.default_rng(seed)
    patient = np.repeat(np.arange(n_patients), per_patient)
    sex = rng.choice(["f", "m"], n_patients)
    frailty = rng.normal(size=(n_patients, 2)) + np.outer(sex == "m", [0.6, 0.0])
    X = frailty[patient] + 0.1 * rng.normal(size=(patient.size, 2))
    came_back = X.sum(axis=1) + rng.normal(size=patient.size) > 0
    return X, came_back.astype(int), sex[patient], patient


# %%
# A certificate for patients
# --------------------------
# The same limit is certified forty times, each time for 300 new patients with ten visits each. With
# visits taken for patients it is too often exceeded among all patients; with ``units=patient`` it
# holds, or the fit says that so few patients do not show it.
everybody, _, their_sex, _ = visits(50_000, 1, seed=1000)
exceeded = {"visits": [], "patients": []}
for seed in range(40):
    X, y, sex, patient = visits(300, 10, seed)
    for unit, units in (("visits", None), ("patients", patient)):
        model = FairDecisionClassifier(
            LogisticRegression(), max_disparity=0.1, group_aware=True, certificate=0.95
        )
        with warnings.catch_warnings(action="ignore"):  # more patients get the programme
            model.fit(X, y, sensitive_features=sex, units=units)
        if model.status_ == "certified":
            decided = model.predict(everybody, sensitive_features=their_sex)
            difference = demographic_parity_difference(None, decided, sensitive_features=their_sex)
            exceeded[unit].append(difference > 0.1)
for unit, those in exceeded.items():
    print(f"{unit}: {len(those)} of 40 certified, {sum(those)} above the limit among all patients")

# %%
# How much a visit more is worth
# ------------------------------
# The limit that the decisions of 300 patients show falls with the number of their visits if each
# visit is taken for a patient. It hardly does if patients are counted.
n_visits = [1, 2, 3, 5, 10, 20]
bounds = {"visits": [], "patients": []}
for k in n_visits:
    X, y, sex, patient = visits(300, k, seed=0)
    decided = (X[:, 1] > 0).astype(int)
    for unit, units in (("visits", None), ("patients", patient)):
        bound = disparity_upper_bound(
            "demographic_parity", None, decided, sensitive_features=sex, units=units
        )
        bounds[unit].append(bound)
figure, ax = plt.subplots(figsize=(5.4, 3.8), layout="constrained")
for unit, values in bounds.items():
    ax.plot(n_visits, values, "o-", label=f"{unit} counted")
ax.set(xscale="log", xticks=n_visits, xticklabels=n_visits, ylim=(0, None))
ax.set(xlabel="Visits of each patient", ylabel="Largest difference possible (95%)")
ax.minorticks_off()
ax.legend(frameon=False)
