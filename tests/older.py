"""Parts of scikit-learn that tests need and older versions do not have."""

import pytest
import sklearn

try:
    from sklearn.callback import ProgressBar, ScoringMonitor
except ImportError:
    ProgressBar = ScoringMonitor = None

needs_callbacks = pytest.mark.skipif(
    ProgressBar is None, reason="scikit-learn has callbacks from 1.9 on"
)

VERSION = tuple(int(part) for part in sklearn.__version__.split(".")[:2])
# Before, a search that is given no scoring could not pass the groups on to ``score``.
ROUTES_TO_SCORE = VERSION >= (1, 8)
needs_sparse_interface = pytest.mark.skipif(VERSION < (1, 9), reason="the setting came with 1.9")
needs_new_cache = pytest.mark.skipif(VERSION < (1, 7), reason="the cache had other places")
# With two classes the check of 1.6 compares models of opposite labels.
MIXED_UP = {
    f"check_sample_weight_equivalence_on_{kind}_data": "labels are mixed up in the check of 1.6"
    for kind in ("dense", "sparse")
    if VERSION < (1, 7)
}
