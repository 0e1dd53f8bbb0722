"""
A shortlist by boosted trees
============================

The best fifth of the applicants for a loan gets a better offer. Trees rank them, and there are few
women at the top. A calibrator for the scores of the trees makes the best fifths of women and men
alike. How well does this hold on unseen data, and what does it cost?
"""

# %%
# The data
# --------
# A pipeline handles strings and missing values. The calibrator reads the sex from its column and
# does not pass it to the trees.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OrdinalEncoder

from skfair.classification import PartialParityCalibrator
from skfair.datasets import make_loans
from skfair.inspection import CCDFCurveDisplay
from skfair.metrics import noise_floor, partial_statistical_parity_gap

TOP = 0.2
INTERVAL = (0.0, TOP)


def applicants(n_samples, seed):
    """Draw rows with the column "sex", and who was granted a loan."""
    loans = make_loans(n_samples, random_state=seed)
    return loans.data.drop(columns="ethnicity"), loans.target.to_numpy()


X, y = applicants(20_000, seed=0)
X_test, y_test = applicants(20_000, seed=1)

words = make_column_transformer(
    (
        OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1),
        make_column_selector(dtype_exclude="number"),
    ),
    remainder="passthrough",
)
trees = make_pipeline(words, HistGradientBoostingClassifier(max_iter=40, random_state=0))


def disparity(scores, sex, interval=INTERVAL):
    """Measure Definition 4.2: shares of the interval."""
    return partial_statistical_parity_gap(None, scores, sensitive_features=sex, interval=interval)


# %%
# With and without
# ----------------
# The trees in all calibrators are the same; only the maps differ. With ``cv`` they are learned on
# scores of rows that the trees have not seen. A limit of 1 has no effect. The limit holds on the
# training rows; on unseen data the noise of sampling adds to the disparity. The quality of a list
# is the share of people on it who were granted a loan in the past.
models = {
    bound: PartialParityCalibrator(trees, INTERVAL, max_disparity=bound, cv=3, sensitive="sex").fit(
        X, y
    )
    for bound in (1.0, 0.2, 0.1)
}


def quality(scores, X, y):
    """Return the shares on the list of those who were granted a loan, and of women."""
    best = np.argsort(-scores)[: round(TOP * len(scores))]
    return y[best].mean(), (X["sex"].to_numpy()[best] == "female").mean()


print("bound  disparity: fit   test   at most   on the list: granted  women")
for bound, model in models.items():
    scores = model.decision_function(X_test)
    granted, women = quality(scores, X_test, y_test)
    print(
        f"{bound:<5}{model.train_disparity_:16.3f}{disparity(scores, X_test['sex']):7.3f}"
        f"{model.disparity_upper_bound(X_test, y_test):10.2f}{granted:20.3f}{women:8.3f}"
    )

# %%
# What a test sample can tell
# ---------------------------
# Even without a true difference, the best fifths of the two groups in the test rows show a
# disparity. This is the noise floor, and values below its upper end are not evidence against a
# model. "At most" is an upper bound for the disparity among all people, with 95% confidence. It is
# far above the measured value, because it holds for any distribution of scores. It takes many more
# rows to prove that a disparity is small.
floor = noise_floor(
    partial_statistical_parity_gap,
    None,
    models[0.1].decision_function(X_test),
    sensitive_features=X_test["sex"],
    interval=INTERVAL,
    random_state=0,
)
print(f"noise floor: mean {floor.mean:.3f}, 95% of samples below {floor.upper:.3f}")

figure, ax = plt.subplots(figsize=(5.2, 4.2), layout="constrained")
for bound, name in ((1.0, "trees"), (0.1, "at most 0.1")):
    CCDFCurveDisplay.from_estimator(
        models[bound], X_test, reference="male", interval=INTERVAL, name=name, ax=ax
    )
ax.set(xlim=(0, 0.4), ylim=(0, 0.4), title="Test data")

# %%
# Why cross-fitting
# -----------------
# A forest overfits its training rows. Their scores have a different distribution than those of new
# people, so maps that are learned on them do not fit unseen data. The interval now contains the
# decisions, and we measure on 30,000 unseen people. Maps that fit also cost less accuracy.
columns = ["income", "loan_amount", "employment_years", "age", "sex"]
everybody = make_loans(30_000, missing_rate=0.0, random_state=100)
forest = RandomForestClassifier(50, min_samples_leaf=2, random_state=0)
interval = (0.2, 0.6)
rows = {None: [], 3: []}
for seed in range(3):
    sample = make_loans(4000, missing_rate=0.0, random_state=seed)
    for cv, gaps in rows.items():
        model = PartialParityCalibrator(
            forest, interval, max_disparity=0.1, cv=cv, sensitive="sex"
        ).fit(sample.data[columns], sample.target)
        scores = model.decision_function(everybody.data[columns])
        gaps.append(disparity(scores, everybody.data["sex"], interval))
        accuracy = np.mean((scores > 0) == everybody.target)
        print(f"sample {seed}, cv={cv}: disparity {gaps[-1]:.3f}, accuracy {accuracy:.3f}")

figure, ax = plt.subplots(figsize=(7, 2.2), layout="constrained")
for position, gaps in enumerate(rows.values()):
    ax.plot(gaps, np.full(len(gaps), position), "o", fillstyle="none")
ax.axvline(0.1, color="0.5", linestyle="--", label="bound on the training rows")
ax.set_yticks([0, 1], ["same rows", "cross-fitted"])
ax.set(ylim=(1.5, -0.5), xlim=(0, None), xlabel="Disparity on unseen data")
ax.legend(loc="lower right")
