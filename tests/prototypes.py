"""The smallest estimators that use every shared part: the tests of the parts fit these."""

from numbers import Integral

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, ClusterMixin
from sklearn.cluster import kmeans_plusplus
from sklearn.metrics import pairwise_distances_argmin
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from skfair.base import SensitiveFeaturesMixin, fit_method, report_iterations
from skfair.read import read_features, read_groups, read_rows
from skfair.utils.history import History
from skfair.utils.older import CallbackSupportMixin


class CentroidClassifier(
    SensitiveFeaturesMixin, CallbackSupportMixin, ClassifierMixin, BaseEstimator
):
    """Nearest class mean; pretends to iterate, so that callbacks have something to follow."""

    _parameter_constraints = {
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        **SensitiveFeaturesMixin._group_constraints,
    }

    def __init__(self, max_iter=5, *, sensitive=None):
        self.max_iter = max_iter
        self.sensitive = sensitive

    @fit_method
    def fit(self, X, y, sample_weight=None, *, sensitive_features=None):
        data = read_rows(
            self, X, y, sensitive_features=sensitive_features, sample_weight=sample_weight
        )
        self._keep(data.reading)
        check_classification_targets(data.y)
        classes, codes = np.unique(data.y, return_inverse=True)
        if classes.size < 2:
            raise ValueError(f"y has 1 class, {classes[0]!r}; a classifier needs at least 2.")
        weights = np.ones(codes.size) if data.sample_weight is None else data.sample_weight
        one_hot = np.eye(classes.size)[codes] * weights[:, None]
        # A class whose rows all weigh nothing is nowhere near any point.
        mass = one_hot.sum(axis=0)
        with np.errstate(invalid="ignore", divide="ignore"):
            means = np.nan_to_num((one_hot.T @ data.X) / mass[:, None], nan=np.inf)
        target = np.where(np.isfinite(means), means, 1e300)
        history = History()
        centers = np.zeros_like(target)
        with report_iterations(
            self,
            X,
            y,
            max_iter=self.max_iter,
            attributes=lambda c: {"centers_": c, "classes_": classes},
        ) as callback:
            for i in range(self.max_iter):
                centers = target * ((i + 1) / self.max_iter)
                history.record(objective=self.max_iter - i)
                if callback(centers):
                    break
        self.classes_, self.centers_, self.n_iter_ = classes, centers, i + 1
        self.history_ = history.as_dict()
        return self

    def predict(self, X):
        check_is_fitted(self)
        return self.classes_[pairwise_distances_argmin(read_features(self, X), self.centers_)]


class GroupAwareClassifier(CentroidClassifier):
    """Its predictions need the groups: members of the first group are always accepted."""

    def predict(self, X, *, sensitive_features=None):
        check_is_fitted(self)
        labels = super().predict(X)
        groups = read_groups(self, X, sensitive_features)
        if groups is None:
            raise ValueError("This model needs sensitive_features at prediction.")
        return np.where(groups[0] == 0, self.classes_[-1], labels)

    __metadata_request__predict = {"sensitive_features": True}


class SeedClusterer(SensitiveFeaturesMixin, CallbackSupportMixin, ClusterMixin, BaseEstimator):
    """Assigns each row to the nearest of the k-means++ seeds."""

    _parameter_constraints = {
        "n_clusters": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state"],
        **SensitiveFeaturesMixin._group_constraints,
    }

    def __init__(self, n_clusters=2, *, random_state=None, sensitive=None):
        self.n_clusters = n_clusters
        self.random_state = random_state
        self.sensitive = sensitive

    @fit_method
    def fit(self, X, y=None, *, sensitive_features=None, sample_weight=None):
        data = read_rows(
            self,
            X,
            sensitive_features=sensitive_features,
            sample_weight=sample_weight,
            supervised=False,
            dtype=[np.float64, np.float32],
        )
        self._keep(data.reading)
        rng = check_random_state(self.random_state)
        centers, _ = kmeans_plusplus(
            data.X, self.n_clusters, sample_weight=data.sample_weight, random_state=rng
        )
        with report_iterations(
            self, X, y, max_iter=1, attributes=lambda c: {"cluster_centers_": c}
        ) as callback:
            callback(centers)
        self.cluster_centers_ = centers
        self.labels_ = pairwise_distances_argmin(data.X, centers).astype(np.int32)
        self.n_iter_ = 1
        return self

    def predict(self, X):
        check_is_fitted(self)
        X = read_features(self, X, dtype=[np.float64, np.float32])
        return pairwise_distances_argmin(X, self.cluster_centers_).astype(np.int32)


class QuietCallback:
    """A callback that does nothing; others are made of it."""

    def setup(self, estimator, context): ...

    def teardown(self, estimator, context): ...

    def on_fit_task_begin(self, estimator, context): ...

    def on_fit_task_end(self, estimator, context): ...
