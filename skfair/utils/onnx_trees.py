"""Boosted trees of scikit-learn and CatBoost as ONNX operators.

The trees of a ``HistGradientBoostingClassifier`` become one operator. It compares thresholds and
rows in double precision, as ``predict_proba`` does, and returns the sum of the leaves in single
precision. CatBoost writes such an operator itself, which :func:`catboost_trees` reads.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from skfair.utils.onnx_ops import FLOAT


def hist_gradient_boosting(model: Any, rows: Any, ops: Any) -> Any:
    """Return the probabilities of the classes, an expression; raise for splits by categories.

    ``rows`` are numbers of double precision.
    """
    if model.is_categorical_ is not None:
        raise ValueError(
            "HistGradientBoostingClassifier splits by categories, which has no ONNX converter. "
            "Encode these columns in a pipeline, ColumnTransformer([('codes', OneHotEncoder("
            "sparse_output=False, handle_unknown='ignore'), columns)], remainder='passthrough'), "
            "and fit with categorical_features=None."
        )
    trees = [
        (target, tree.nodes)
        for iteration in model._predictors
        for target, tree in enumerate(iteration)
    ]
    n_targets = model._baseline_prediction.size
    scores = ops(
        "TreeEnsembleRegressor_3", rows, n_targets=n_targets, **_attributes(trees, ops.tensor)
    )
    scores = ops("Add", ops.number(scores), model._baseline_prediction.reshape(1, -1))
    if n_targets > 1:
        return ops("Softmax", scores, axis=1)
    return ops("Softmax", ops("MatMul", scores, np.array([[0.0, 1.0]])), axis=1)


def _attributes(trees: list[tuple[int, Any]], tensor: Any) -> dict[str, Any]:
    """Return the attributes of the operator, given (class, nodes) for each tree.

    ``tensor`` turns an array of double precision into what an attribute of ONNX can be.
    """
    nodes = np.concatenate([own for _, own in trees])
    sizes = [len(own) for _, own in trees]
    numbers = np.concatenate([np.arange(size) for size in sizes])
    of_tree = np.repeat(np.arange(len(trees)), sizes)
    is_leaf = nodes["is_leaf"].astype(bool)
    # Rows whose value is at most the threshold go to the left node, which is the true one.
    return {
        "nodes_treeids": of_tree.tolist(),
        "nodes_nodeids": numbers.tolist(),
        "nodes_featureids": np.where(is_leaf, 0, nodes["feature_idx"]).tolist(),
        "nodes_modes": np.where(is_leaf, "LEAF", "BRANCH_LEQ").tolist(),
        "nodes_values_as_tensor": tensor(np.where(is_leaf, 0.0, nodes["num_threshold"])),
        "nodes_truenodeids": np.where(is_leaf, 0, nodes["left"]).tolist(),
        "nodes_falsenodeids": np.where(is_leaf, 0, nodes["right"]).tolist(),
        "nodes_missing_value_tracks_true": nodes["missing_go_to_left"].astype(int).tolist(),
        "target_treeids": of_tree[is_leaf].tolist(),
        "target_nodeids": numbers[is_leaf].tolist(),
        "target_ids": np.repeat([target for target, _ in trees], sizes)[is_leaf].tolist(),
        "target_weights_as_tensor": tensor(nodes["value"][is_leaf]),
    }


def catboost_trees(model: Any, rows: Any, ops: Any) -> Any:
    """Return the probabilities of the classes, an expression.

    CatBoost writes the operator, and raises if it splits by categories or texts. Its classes become
    their numbers, because only the probabilities are used.
    """
    from catboost.utils import convert_to_onnx_object
    from onnx.helper import get_attribute_value

    if np.asarray(model.classes_).dtype.kind not in "iuUO":
        raise ValueError(
            f"CatBoost writes no graph for the classes {list(model.classes_)}. Fit with integers, "
            "such as y.astype(int), or with texts."
        )
    trees = convert_to_onnx_object(model).graph.node[0]
    attributes = {one.name: get_attribute_value(one) for one in trees.attribute}
    attributes.pop("classlabels_strings", None)
    attributes["classlabels_int64s"] = list(range(len(model.classes_)))
    attributes["nodes_modes"] = [mode.decode() for mode in attributes["nodes_modes"]]
    attributes["post_transform"] = attributes["post_transform"].decode()
    return ops("TreeEnsembleClassifier_1", ops("Cast", rows, to=FLOAT), **attributes)[1]
