"""
Audit a model, then limit its disparity: the demo
=================================================

A bank's model decides on loan applications. It was trained on past decisions in which women were
refused more often. We audit it on unseen applicants, limit the disparity of its decisions with a
certificate for the population, and look at who gains.
"""

import os
import tempfile
from importlib.util import find_spec
from pathlib import Path

import matplotlib.pyplot as plt
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OrdinalEncoder

from skfair.classification import FairDecisionClassifier
from skfair.datasets import make_loans
from skfair.metrics import group_report
from skfair.report import audit

X, y, people = make_loans(8000, bias=2.0, random_state=0)
X_new, y_new, people_new = make_loans(8000, bias=2.0, random_state=1)
X, X_new = (table.drop(columns=["sex", "ethnicity"]) for table in (X, X_new))
encoder = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1)
columns = make_column_transformer(
    (encoder, make_column_selector(dtype_exclude="number")),
    remainder="passthrough",
)
model = make_pipeline(columns, HistGradientBoostingClassifier(max_iter=30, random_state=0))
model.fit(X, y)

# %%
# The audit
# ---------
# An audit works with any model, because it only uses the predictions. A verdict compares the rates
# of two groups, and says whether the gap is statistically significant.
sex, sex_new = people["sex"], people_new["sex"]
report = audit(y_new, model.predict(X_new), sensitive_features=people_new, title="Loan model")
print(report)
folder = Path(
    os.environ.get("SKFAIR_DEMO", "." if os.access(".", os.W_OK) else tempfile.gettempdir())
)
if find_spec("jinja2"):  # the page of the audit: pip install ".[report]"
    report.to_html(folder / "audit.html")

# %%
# The limit
# ---------
# The selection rates of women and men may differ by at most 5 percentage points in the population,
# at a confidence of 95%, and nobody's group may be selected less often than before.
fair = FairDecisionClassifier(
    model, max_disparity=0.05, group_aware=True, certificate=0.95, random_state=0
)
fair.fit(X, y, sensitive_features=sex)
print(f"status: {fair.status_}, in the population at most {fair.certified_disparity_:.3f}")
print(fair.to_thresholds().round(2).to_string())

# %%
# Who gains
# ---------
# On the left what the audit found, with 95% intervals; on the right past decisions and both models
# on unseen applicants.
decisions = {
    "past decisions": y_new,
    "the model": model.predict(X_new),
    "within 5 points,\ncertified": fair.predict(X_new, sensitive_features=sex_new),
}
looks = {"female": ("women", "#0072B2", "o"), "male": ("men", "#D55E00", "s")}
figure, (left, right) = plt.subplots(
    1, 2, figsize=(9.6, 3.2), width_ratios=(1, 1.3), layout="constrained"
)
for row, (attribute, level) in enumerate(
    [("sex", "female"), ("sex", "male"), *(("ethnicity", name) for name in "ABC")]
):
    rates = group_report(y_new, decisions["the model"], sensitive_features=people_new[attribute])
    low, rate, high = (
        100 * rates.loc[level, ["selection_rate_low", "selection_rate", "selection_rate_high"]]
    )
    name, colour, marker = looks.get(level, (f"ethnicity {level}", "0.35", "D"))
    left.errorbar(
        rate, row, xerr=[[rate - low], [high - rate]], fmt=marker, color=colour, ms=7, capsize=3
    )
    left.annotate(name, (high, row), (8, -4), textcoords="offset points", color=colour)
left.set(
    title="Audit: selection rates of the model",
    yticks=[],
    ylim=(4.6, -0.6),
    xlim=(0, 62),
    xlabel="loans granted, %",
)
for row, labels in enumerate(decisions.values()):
    table = group_report(y_new, labels, sensitive_features=sex_new, method=None)
    rates = 100 * table["selection_rate"]
    right.plot(rates[["female", "male"]], [row, row], color="0.8", lw=5, zorder=1)
    for who, (label, colour, marker) in looks.items():
        right.scatter(rates[who], row, s=70, color=colour, marker=marker, zorder=2)
        if row == 0:
            right.annotate(
                label,
                (rates[who], row),
                (0, 9),
                textcoords="offset points",
                ha="center",
                color=colour,
            )
    note = f"{rates['male'] - rates['female']:.1f} points"
    if row:
        note += f", accuracy {100 * table.loc['overall', 'accuracy']:.0f}%"
    right.annotate(note, (rates["male"], row), (12, -4), textcoords="offset points")
right.set(
    title="Before and after",
    yticks=range(3),
    yticklabels=decisions,
    ylim=(2.5, -0.6),
    xlim=(0, 85),
    xlabel="loans granted, %",
)
for ax in (left, right):
    ax.spines[["top", "right"]].set_visible(False)
figure.savefig(folder / "demo.png", dpi=100)
print(f"The picture is {folder / 'demo.png'}.")
