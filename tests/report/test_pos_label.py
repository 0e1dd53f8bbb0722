"""Targets of an audit may have other words than its decisions."""

from functools import partial

import numpy as np
import pytest

from tests.classification.test_pos_label import GROUPS, X, Y
from tests.report.family import rates_of

audited = partial(rates_of, **GROUPS)


def test_targets_may_have_other_words_than_decisions():
    decided = (X[:, 0] > 0.4).astype(int)
    repaid, granted = np.array(["nein", "ja"])[Y], np.array(["abgelehnt", "genehmigt"])[decided]
    words = {"pos_label": "genehmigt", "pos_label_true": "ja"}
    assert audited(repaid, granted, **words) == audited(Y, decided)
    assert audited(repaid, decided, pos_label_true="ja") == audited(Y, decided)
    with pytest.raises(ValueError, match="none in common"):
        audited(repaid, granted, pos_label="genehmigt")
    with pytest.raises(ValueError, match="pos_label_true='Ja' is not one .* mean 'ja'"):
        audited(repaid, granted, pos_label="genehmigt", pos_label_true="Ja")
    with pytest.raises(ValueError, match="'ja' is a class of y_true, got None"):
        audited(None, granted, **words)
