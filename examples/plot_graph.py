"""
Communities of a social network, from networkx
==============================================

We divide the members of a network into four working groups. People who know each other should be in
the same group, and every group should have women and men in proportion. The networkx graph is
passed directly to ``fit``.
"""

import matplotlib.pyplot as plt
import networkx as nx
import numpy as np

from skfair.cluster import FairSpectralClustering
from skfair.metrics import balance_score, normalized_cut

graph = nx.random_partition_graph([80, 80, 80, 80], 0.25, 0.02, seed=0)
rng = np.random.default_rng(0)
community = np.repeat([0, 1, 2, 3], 80)
is_woman = rng.random(320) < np.array([0.8, 0.6, 0.4, 0.2])[community]
sex = np.where(is_woman, "women", "men")
nx.set_node_attributes(graph, dict(enumerate(sex)), "sex")

place = nx.spring_layout(graph, seed=0)
figure, axes = plt.subplots(1, 2, figsize=(10, 4.6), layout="constrained")
for ax, limit in zip(axes, (0.0, 0.8), strict=True):
    clusters = FairSpectralClustering(
        4, affinity="precomputed", min_balance=limit, assign_labels="fair", random_state=0
    ).fit(graph, sensitive_features=list(nx.get_node_attributes(graph, "sex").values()))
    balance = balance_score(clusters.labels_, sensitive_features=sex, relative=True)
    cut = normalized_cut(nx.to_scipy_sparse_array(graph), clusters.labels_)
    nx.draw_networkx_edges(graph, place, ax=ax, alpha=0.03)
    for shape, who in (("o", "women"), ("s", "men")):
        nodes = np.flatnonzero(sex == who).tolist()
        nx.draw_networkx_nodes(
            graph, place, nodes, ax=ax, node_shape=shape, node_size=30,
            node_color=[f"C{label}" for label in clusters.labels_[nodes]],
        )  # fmt: skip
    ax.set_title(f"limit {limit}: balance {balance:.2f}, cut {cut:.2f}")
figure.supxlabel("circles are women, squares are men; colours are clusters")
