"""
How large a disparity does chance alone produce?
================================================

Groups that are treated alike still differ in a sample, and differ more with many groups and few
rows. The noise floor is the disparity that chance alone produces. A value below it is not evidence
of a difference.
"""

import matplotlib.pyplot as plt
import numpy as np

from skfair.metrics import demographic_parity_difference, noise_floor

rng = np.random.default_rng(0)
sizes = [100, 300, 1000, 3000]

# %%
# Random decisions
# ----------------
# Everybody is selected with a probability of 30%. There are two, six or twelve groups.
figure, ax = plt.subplots(figsize=(5, 3.4), layout="constrained")
for n_groups, marker in ((2, "o"), (6, "s"), (12, "^")):
    uppers = []
    for rows_per_group in sizes:
        group = np.repeat(np.arange(n_groups).astype(str), rows_per_group)
        selected = (rng.random(len(group)) < 0.3).astype(int)
        floor = noise_floor(
            demographic_parity_difference,
            None,
            selected,
            sensitive_features=group,
            n_permutations=100,
            random_state=0,
        )
        uppers.append(floor.upper)
    print(f"{n_groups:>2} groups: " + ", ".join(f"{u:.3f}" for u in uppers))
    ax.plot(sizes, uppers, marker + "-", label=f"{n_groups} groups")
ax.set(xscale="log", yscale="log", xlabel="rows in each group")
ax.set_ylabel("disparity by chance, 95% below")
ax.legend()
