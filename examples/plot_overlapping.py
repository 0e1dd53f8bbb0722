"""
Several attributes: crossed, or separately
==========================================

Sex and ethnicity can be limited separately, or crossed into six groups. A model that keeps the
limit for each attribute can still exceed it for their intersections. But crossed groups are small.
"""

import matplotlib.pyplot as plt
from sklearn.preprocessing import StandardScaler

from skfair import Sensitive
from skfair.classification import ConstrainedERMClassifier
from skfair.datasets import make_loans
from skfair.metrics import demographic_parity_difference

X, y, people = make_loans(6000, bias=2.0, missing_rate=0.0, random_state=0)
X = StandardScaler().fit_transform(X.select_dtypes("number"))
models = {
    "no limit": ConstrainedERMClassifier(max_disparity=1.0),
    "one by one": ConstrainedERMClassifier(
        max_disparity=0.05, sensitive=Sensitive(intersectional=False)
    ),
    "crossed": ConstrainedERMClassifier(max_disparity=0.05),
}
views = {"sex": people["sex"], "ethnicity": people["ethnicity"], "six crossed groups": people}
found = {}
for name, model in models.items():
    predicted = model.fit(X, y, sensitive_features=people).predict(X)
    found[name] = [
        demographic_parity_difference(y, predicted, sensitive_features=view)
        for view in views.values()
    ]
    print(name, [round(value, 2) for value in found[name]], f"accuracy {model.score(X, y):.2f}")

# %%
# The line is the limit.
figure, ax = plt.subplots(figsize=(5.2, 3.9), layout="constrained")
for (name, values), marker in zip(found.items(), "Xos", strict=True):
    ax.plot(values, list(views), marker, markersize=10, label=name)
ax.axvline(0.05, color="0.3", lw=1)
apart = 100 * found["one by one"][-1]
ax.set_title(f"Limited one by one, crossed groups\nare still {apart:.0f} points apart")
ax.set(xlabel="disparity", xlim=(0, None))
ax.margins(y=0.2)
ax.invert_yaxis()
ax.legend()
