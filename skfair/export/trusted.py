"""The types that a fitted model is stored with, for programs that read models without pickle."""

from __future__ import annotations

from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted


def trusted_types(model: BaseEstimator) -> list[str]:
    """List the types that ``skops`` must be told to trust before it loads a fitted model.

    ``skops.io.load`` and MLflow read models without pickle, and create only objects of types that
    they know or that a user lists. Take the list from a model that you fitted yourself: types
    that are found in a file of somebody else are to be looked at first.

    Parameters
    ----------
    model : estimator
        A fitted estimator of skfair, or any other that has some of skfair inside, such as a
        pipeline or a search.

    Returns
    -------
    types : list of str
        The full names of the types, sorted: ``trusted=`` of ``skops.io.load`` and
        ``skops_trusted_types=`` of ``mlflow.sklearn.log_model``.

    See Also
    --------
    to_onnx : Models for programs without Python.

    Examples
    --------
    >>> import numpy as np
    >>> from skfair.classification import ConstrainedERMClassifier
    >>> from skfair.export import trusted_types
    >>> rng = np.random.default_rng(0)
    >>> X, sex = rng.normal(size=(100, 3)), rng.choice(["f", "m"], 100)
    >>> model = ConstrainedERMClassifier(max_disparity=0.1)
    >>> model = model.fit(X, X[:, 0] > 0, sensitive_features=sex)
    >>> trusted_types(model)[-1]  # doctest: +SKIP
    'skfair.groups.levels.GroupLevels'
    """
    try:
        from skops import io
    except ImportError as error:
        raise ImportError("trusted_types needs skops: pip install skops.") from error
    check_is_fitted(model)
    return sorted(io.get_untrusted_types(data=io.dumps(model)))
