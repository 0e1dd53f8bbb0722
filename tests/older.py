"""What tests ask of scikit-learn that older versions do not have."""

import pytest

try:
    from sklearn.callback import ProgressBar, ScoringMonitor
except ImportError:
    ProgressBar = ScoringMonitor = None

needs_callbacks = pytest.mark.skipif(
    ProgressBar is None, reason="scikit-learn has callbacks from 1.9 on"
)

__all__ = ["ProgressBar", "ScoringMonitor", "needs_callbacks"]
