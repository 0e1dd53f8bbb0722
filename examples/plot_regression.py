"""
Numbers: predicted amounts that are alike on average
====================================================

A regression predicts the amount of a loan, and predicts smaller amounts for women than for men. The
limit has the units of the predictions, in this example thousands.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.preprocessing import StandardScaler

from skfair.datasets import make_loans
from skfair.metrics import mean_score_difference
from skfair.regression import ConstrainedERMRegressor

loans = make_loans(6000, bias=3.0, missing_rate=0.0, random_state=0)
X = StandardScaler().fit_transform(loans.data[["age", "income", "employment_years"]])
amount, sex = loans.data["loan_amount"].to_numpy(), loans.sensitive_features["sex"]

# %%
# From no limit to a small one
# ----------------------------
limits = np.array([3.0, 1.5, 1.0, 0.5, 0.25, 0.1])
errors, disparities = [], []
for limit in limits:
    model = ConstrainedERMRegressor(max_disparity=limit).fit(X, amount, sensitive_features=sex)
    predicted = model.predict(X)
    errors.append(np.sqrt(np.mean((amount - predicted) ** 2)))
    disparities.append(mean_score_difference(amount, predicted, sensitive_features=sex))
    print(f"limit {limit}: disparity {disparities[-1]:.3f}, error {errors[-1]:.3f}")

# %%
# The limit costs little here: a small shift of the weights is enough.
figure, ax = plt.subplots(figsize=(5.2, 3.2), layout="constrained")
ax.plot(disparities, errors, "o-")
ax.set(xlabel="difference of mean predicted amounts, thousands", ylabel="root mean squared error")
