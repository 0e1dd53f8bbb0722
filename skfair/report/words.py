"""In plain words: what each number of a report says, and what it does not say."""

from __future__ import annotations

from typing import NamedTuple


class Words(NamedTuple):
    """The name of a number for readers, what it says, and what it does not say."""

    name: str
    says: str
    does_not_say: str


MEASURES: dict[str, Words] = {
    "base_rate": Words(
        "Base rate",
        "The share of the group that is truly positive.",
        "Whether the labels are right, and were recorded in the same way in all groups.",
    ),
    "selection_rate": Words(
        "Selection rate",
        "The share of the group that is decided positively.",
        "Whether the right people were selected.",
    ),
    "true_positive_rate": Words(
        "True positive rate",
        "Of those who are truly positive, the share that is decided positively.",
        "What happens to those who are truly negative.",
    ),
    "false_positive_rate": Words(
        "False positive rate",
        "Of those who are truly negative, the share that is decided positively.",
        "What happens to those who are truly positive.",
    ),
    "false_negative_rate": Words(
        "False negative rate",
        "Of those who are truly positive, the share that is decided negatively.",
        "What happens to those who are truly negative.",
    ),
    "positive_predictive_value": Words(
        "Precision",
        "Of those who are decided positively, the share that is truly positive.",
        "How many truly positive people were missed.",
    ),
    "false_omission_rate": Words(
        "False omission rate",
        "Of those who are decided negatively, the share that is truly positive.",
        "How many people are decided positively and negatively.",
    ),
    "accuracy": Words(
        "Accuracy",
        "The share of the predictions that are right.",
        "Which of the two kinds of errors was made. Groups of equal accuracy may be harmed in "
        "opposite ways.",
    ),
    "mean_score": Words(
        "Mean score",
        "The average score of the group.",
        "How many are above a threshold.",
    ),
    "auc": Words(
        "AUC",
        "How often truly positive members have higher scores than truly negative ones.",
        "Whether members of one group are ranked fairly compared with those of another.",
    ),
    "calibration_error": Words(
        "Calibration error",
        "How far scores are from the observed shares, on average.",
        "In which direction; see the curve.",
    ),
    "mean_target": Words("Mean target", "The average true number.", "How much the numbers vary."),
    "mean_prediction": Words("Mean prediction", "The average prediction.", "Whether it is right."),
    "mean_residual": Words(
        "Mean residual",
        "The average of truth minus prediction. Above 0, predictions for the group are too low.",
        "How large errors are, because errors of opposite signs cancel.",
    ),
    "mean_absolute_error": Words(
        "Mean absolute error",
        "How far predictions are from the truth, on average.",
        "In which direction.",
    ),
    "accuracy_change": Words(
        "Change of accuracy",
        "Accuracy now minus accuracy before, of the same rows.",
        "Whether the change is worth it.",
    ),
    "relative_cost": Words(
        "Cost",
        "The cost of the clustering as a multiple of that of the cheapest one.",
        "Whether a cheaper clustering is more useful.",
    ),
    "error_change": Words(
        "Change of error",
        "Mean absolute error now minus that before, of the same rows.",
        "Whether the change is worth it.",
    ),
    "moved_up": Words(
        "Moved up",
        "The share that is decided positively (or predicted higher) now and was not before.",
        "Whether those who moved are truly positive.",
    ),
    "moved_down": Words(
        "Moved down",
        "The share that was decided positively (or predicted higher) before and is not now.",
        "Whether those who moved are truly negative.",
    ),
    "changed": Words(
        "Changed", "The share whose predicted class has changed.", "Whether the change is right."
    ),
    "share_predicted": Words(
        "Share predicted", "How often the class is predicted.", "Whether the predictions are right."
    ),
    "recall": Words(
        "Recall",
        "Of those who truly are in the class, the share that is predicted to be.",
        "How often the class is predicted wrongly.",
    ),
}

METRICS: dict[str, Words] = {
    "demographic_parity": Words(
        "Demographic parity",
        "How far selection rates are apart. A ratio below 0.8 is what the 80 percent rule flags.",
        "Whether the difference is justified by the truth.",
    ),
    "equal_opportunity": Words(
        "Equal opportunity",
        "How far true positive rates are apart: do truly positive people have the same chance?",
        "Anything about those who are truly negative.",
    ),
    "false_positive_parity": Words(
        "False positive parity",
        "How far false positive rates are apart.",
        "Anything about those who are truly positive.",
    ),
    "false_negative_parity": Words(
        "False negative parity",
        "How far false negative rates are apart.",
        "Anything about those who are truly negative.",
    ),
    "equalized_odds": Words(
        "Equalized odds",
        "The larger of the differences of true and of false positive rates.",
        "Which of the two it is; see the rows above.",
    ),
    "predictive_parity": Words(
        "Predictive parity",
        "How far precisions are apart: does a positive decision mean the same in each group?",
        "Whether groups are selected alike. With different base rates it cannot hold together with "
        "equalized odds, unless predictions are perfect.",
    ),
    "accuracy_parity": Words(
        "Accuracy parity",
        "How far accuracies are apart.",
        "Who is harmed, because both kinds of errors count alike.",
    ),
    "mean_score": Words(
        "Mean score", "How far mean scores are apart.", "Which decisions are made."
    ),
    "mean_prediction": Words(
        "Mean prediction",
        "How far mean predictions are apart.",
        "Whether the true means are apart, too.",
    ),
    "mean_residual": Words(
        "Mean residual",
        "How far mean residuals are apart: are predictions too low for one group and too high for "
        "another?",
        "How precise predictions are.",
    ),
    "mean_absolute_error": Words(
        "Mean absolute error", "How far mean errors are apart.", "In which direction they are."
    ),
    "independence": Words(
        "Independence", "How far selection rates are apart.", "Whether this is right."
    ),
    "separation": Words(
        "Separation",
        "Differences of true and of false positive rates, added up.",
        "Which of the two it is.",
    ),
    "sufficiency": Words(
        "Sufficiency",
        "Differences of the share of truly positive people, among those decided positively and "
        "among those decided negatively, added up.",
        "Which of the two it is.",
    ),
}

LIMITS = (
    "The report describes these rows. It says nothing about people who are not in them.",
    "Labels are assumed to be true. If they were recorded differently in some groups, this affects "
    "all errors.",
    "An interval covers one number. Among many intervals some miss their number.",
    "A difference that chance can explain does not prove equal treatment: small groups can hide "
    "large differences.",
    "With small groups the interval of a gap is cautious: it may include 0 although the gap is "
    "larger than chance can explain.",
    "Rates do not say why they differ, and no number can tell whether a difference is just.",
)


def measure_words(name: str) -> Words:
    """Return the words for a measure such as ``accuracy``, ``before:accuracy``, ``recall[cat]``."""
    plain, _, label = name.removeprefix("before:").partition("[")
    words = MEASURES[plain]
    return words._replace(name=f"{words.name} of {label[:-1]}") if label else words


def metric_words(name: str) -> Words:
    """Return the words for a metric such as ``demographic_parity_difference[cat]``."""
    plain, _, label = name.partition("[")
    criterion, kind = plain.rsplit("_", 1)
    words = METRICS[criterion]
    of_class = f" of {label[:-1]}" if label else ""
    return words._replace(name=f"{words.name}{of_class} ({kind})")
