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
figure, ax = plt.subplots(figsize=(5.4, 3.2), layout="constrained")
for place, (name, values) in enumerate(found.items()):
    ax.bar([x + 0.27 * (place - 1) for x in range(3)], values, 0.25, label=name)
ax.axhline(0.05, color="0.3", lw=1)
ax.set_xticks(range(3), views)
ax.set_ylabel("disparity")
ax.legend()
