"""Errors about arguments that are not there name the one that is meant."""

import copy
import inspect
import pickle

import numpy as np
import pytest
from sklearn.base import clone

from skfair import Cohort, Sensitive
from skfair.classification import (
    ConstrainedERMClassifier,
    FairDecisionClassifier,
    PartialParityClassifier,
)
from skfair.cluster import FairAssignment
from skfair.constraints import DemographicParity
from skfair.metrics import fairness_report, group_report
from skfair.metrics import labels as of_labels
from skfair.report import audit
from skfair.utils.keywords import NamedArguments, groups_by_name
from tests.public import discover_estimators
from tests.registries import CONSTRAINTS, LABEL_METRICS

KINDS = [*discover_estimators().values(), *(CONSTRAINTS[name] for name in CONSTRAINTS), Sensitive]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_a_misspelt_argument_is_named_with_the_right_one(kind):
    parameters = inspect.signature(kind).parameters
    assert list(parameters) == list(inspect.signature(kind.__init__).parameters)[1:]
    for name in parameters:
        misspelt = f"{name[:-2]}x{name[-1]}" if len(name) > 4 else f"{name}s"
        if misspelt not in parameters:
            said = f"unexpected keyword argument '{misspelt}'.*Did you mean"
            with pytest.raises(TypeError, match=said):
                kind(**{misspelt: None})


def test_arguments_of_fairlearn_and_of_the_estimator_are_known():
    with pytest.raises(TypeError, match="'difference_bound'.*fairlearn. In skfair, use max_disp"):
        DemographicParity(difference_bound=0.1)
    with pytest.raises(TypeError, match="'unseen'. It is an argument of the estimator"):
        Sensitive("sex", unseen="overall")
    with pytest.raises(
        TypeError, match=r"ConstrainedERMClassifier.fit\(\).*'groups'.*sensitive_features="
    ):
        ConstrainedERMClassifier().fit(np.eye(4), [0, 1] * 2, groups=["f", "m"] * 2)


@pytest.mark.parametrize(
    ("function", "arguments", "said"),
    [
        (FairDecisionClassifier, {"predict_method": "auto"}, "fairlearn. In skfair, use est"),
        (FairDecisionClassifier, {"metric_ub": 0.05}, "AIF360. In skfair, use max_disparity="),
        (group_report, {"alpha": 0.05}, r"confidence= \(0.95 for an alpha of 0.05\)"),
        (group_report, {"label_column": "y"}, "aequitas. In skfair, use y_true="),
        (ConstrainedERMClassifier, {"estimator": None}, "To limit the decisions of a model, use"),
        (PartialParityClassifier, {"estimator": None}, "To limit the decisions of a model, use"),
    ],
)
def test_arguments_of_other_libraries_are_known(function, arguments, said):
    with pytest.raises(TypeError, match=said):
        function(**arguments)


@pytest.mark.parametrize("function", [group_report, audit, of_labels.equalized_odds_ratio, Cohort])
def test_absent_groups_are_asked_for(function):
    with pytest.raises(TypeError, match=r"'sensitive_features'. Pass the group of each row, such"):
        function([0, 1], [0, 1])


def test_classes_are_made_and_copied_as_usual():
    for made in (FairAssignment(min_balance=0.5), DemographicParity(min_ratio=0.8)):
        for other in (clone(made), copy.deepcopy(made), pickle.loads(pickle.dumps(made))):
            assert other.get_params() == made.get_params()

    class Own(FairAssignment):
        def __init__(self, size=2, **options):
            self.size, self.options = size, options

    assert Own(3, anything=1).options == {"anything": 1}

    class Plain(NamedArguments):
        pass

    assert isinstance(Plain(), Plain)


@pytest.mark.parametrize("name", sorted(LABEL_METRICS))
def test_groups_without_their_name_are_told_it(name):
    y, sex = [0, 1, 1, 0], ["f", "m"] * 2
    for metric in (getattr(of_labels, name), group_report, fairness_report):
        with pytest.raises(TypeError, match="takes 2 arguments without a name, got 3. Pass"):
            metric(y, y, sex)
    assert pickle.loads(pickle.dumps(metric)) is metric
    assert groups_by_name(metric).__doc__ == metric.__doc__
