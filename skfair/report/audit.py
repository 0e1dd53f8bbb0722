"""Audits: the effects of predictions on groups, in one object to read, save and hand on.

``audit`` visits the rows once, sums them up by the combinations of their attributes
(:mod:`skfair.groups.table`), and computes all tables from these sums.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Any, Literal, Self

import numpy as np
import pandas as pd
from sklearn.base import is_regressor

from skfair._typing import ClassLabel, ColumnLike, ColumnsLike, MatrixLike, Seed
from skfair.groups.attributes import check_aligned
from skfair.groups.limits import changes_line
from skfair.groups.table import GroupTable
from skfair.inspection._display import SCORE_METHODS
from skfair.report.impact import impact_table, rule_text
from skfair.report.options import MISSING, Options, read_options
from skfair.report.pages import render
from skfair.report.profile import profile_of, write_profile
from skfair.report.reading import RawRows, TaskName, check_raw_rows, find_task, survey_rows
from skfair.report.result import AuditTables, head_of
from skfair.report.sentences import decision_of, read_about, verdicts_of
from skfair.report.small_groups import Shown
from skfair.report.subgroups import judge_subgroups, search_subgroups, tables_of
from skfair.report.table import read_blocks, read_table
from skfair.report.tasks import Task, gaps_of, searched_of
from skfair.report.views import find_gaps, rates_table, score_report, signed_table
from skfair.utils.docs import documented
from skfair.utils.response import get_response, positive_class
from skfair.utils.text import check_text, visible
from skfair.utils.validation import check_scores

Preset = Literal["ll144", "ugesp", "ecoa"]


@documented
class Audit(AuditTables):
    """What predictions do to groups; made by :func:`audit`.

    All tables are plain DataFrames. ``view`` is an attribute, or several crossed
    (``"sex x age"``); the empty view holds all rows.

    Parameters
    ----------
    title : str
        Title of the report.
    about, columns : dict
        Facts that the user stated, and the names of the columns in the data.
    decision : str
        What counts as a positive decision, in the words of the data.
    made_on, version : str
        The date of the audit, and the version of the package that made it.
    n_rows : int
        Number of rows.
    n_left_out : int or None
        Number of rows left out, because their groups are too small; None if the number would say
        how many rows one of these groups has.
    n_units : int or None
        Number of units (persons), if ``units`` were given.
    n_in_several : dict or None
        By attribute, the number of units that have rows in several of its groups.
    attributes : list of str
        Names of the sensitive attributes.
    confidence : float
        Coverage of all intervals.
    n_simulations : int
        Number of simulated samples behind p-values: none is below 1 divided by this number plus 1.
    min_group_size, suppress_below : float
        Smaller groups are not compared, and not shown.
    hidden : DataFrame
        The groups that are not shown: ``view`` and ``group``.
    rates : DataFrame
        Columns ``view``, ``group``, ``n``, ``measure``, ``value``, ``value_low``, ``value_high``,
        ``apart`` ("small" or "unknown" for groups that are not compared, else empty), and with
        units ``n_units``.
        Measures of the earlier model begin with ``before:``.
    gaps : DataFrame
        One row per view, model (``now`` or ``before``) and metric: ``value`` with its interval and
        the two groups that are furthest apart, groups left out for want of rows, and what chance
        alone shows: ``noise_mean``, ``noise_upper`` (between these two groups). ``p_value`` is
        that of the clearest pair and covers all comparisons of the audit;
        ``is_beyond_chance`` is the verdict; ``clear_first`` and ``clear_second`` are the groups it
        speaks of. A ratio has the verdict of the difference of the same rates. ``is_conditional``
        marks comparisons within levels of ``conditional_on``.
    task : {"binary", "classes", "numbers"}
        What kind of predictions was audited.
    conditional_on : list of str
        Names of the attributes within which groups were compared as well.
    subgroups : DataFrame
        The most extreme subgroups by measure, with p-values that cover the whole search and all
        gaps.
    n_subgroups, n_beyond_chance : int
        How many subgroups were searched, and how many comparisons chance does not explain.
    calibration : DataFrame
        Mean target by mean score of each group, in up to ten bins of about as many of its rows.
    preset, rule : str
        The rule of law whose table was asked for, and what it says; empty without one.
    impact : DataFrame
        The table of that rule, one row per view and group: ``status`` ("compared", "reference",
        "small" for less than 2%, "unknown"), numbers and rates, ``impact_ratio``, and tests as of
        :func:`skfair.metrics.selection_tests`; empty without a preset.
    signed : DataFrame
        With a reference group, each measure of each other group minus that of the reference group:
        ``difference`` with its interval; below 0 the group is lower. ``p_value`` covers what that
        of ``gaps`` covers. Empty without one.

    See Also
    --------
    skfair.metrics.group_report : The rates of each group alone.

    Examples
    --------
    >>> from skfair.datasets import make_group_scores
    >>> from skfair.report import audit
    >>> y, scores, groups = make_group_scores(2000, random_state=0)
    >>> found = audit(y, scores > 0, sensitive_features={"group": groups})
    >>> found.value("demographic_parity_difference") > 0.05
    True
    """

    @classmethod
    def from_estimator(
        cls,
        model: object,
        X: MatrixLike,
        y: ColumnLike,
        *,
        sensitive_features: ColumnsLike,
        before: object | None = None,
        pos_label: ClassLabel = None,
        **options: Any,
    ) -> Self:
        """Audit the predictions of a fitted model.

        Parameters
        ----------
        model : estimator
            A fitted classifier or regressor. Scores of binary classifiers are audited too, if it
            has ``predict_proba`` or ``decision_function``.
        X : array-like of shape (n_samples, n_features)
            Rows, best ones that the model was not fitted on.
        y : array-like of shape (n_samples,)
            Their labels or numbers.
        before : estimator, default=None
            The fitted model that ``model`` replaces, such as the same one without limits: then
            the selection rates of both are reported, overall and by group, and whose decision
            changed. Without it the head says what the limits of ``model`` changed in training.
        pos_label : label, default=None
            The positive class; by default that of the model, mostly the second of its two classes.
        **options
            Further arguments of :func:`audit`.

        Returns
        -------
        found : Audit
            The audit.
        """
        is_binary = len(getattr(model, "classes_", ())) == 2
        pos_label = positive_class(model, pos_label)
        names = "sample_weight", "conditional_on", "units"
        by_row = {name: options.get(name) for name in names}
        check_aligned(X=X, y=y, sensitive_features=sensitive_features, **by_row)
        groups: dict[str, Any] = {"sensitive_features": sensitive_features}
        responses = {"y_pred": get_response(model, X, "predict", **groups)}
        if before is not None:
            responses["before"] = get_response(before, X, "predict", **groups)
        methods = [name for name in SCORE_METHODS[::-1] if hasattr(model, name)]
        if is_binary and methods:
            responses["y_score"] = get_response(model, X, methods, pos_label=pos_label, **groups)
        if is_regressor(model):
            options = {"task": "numbers", **options}
        own = {"model": type(model).__name__}
        if changes := getattr(model, "changes_", None):  # groups may be too small to show
            own["limits changed in training"] = changes_line(changes, of_groups=False)
        own |= dict(options.pop("about", None) or {})
        audited = audit(y, **responses, **groups, pos_label=pos_label, about=own, **options)
        return cls(**audited.fields())

    def bias_profile(self, path: str | PathLike[str] | None = None) -> pd.DataFrame:
        """Return one table with a row for each group and measure, and write it to a file.

        Draft standards for the AI Act of the European Union ask for such a record. Its numbers are
        those of the other tables, and what these do not show is not in it either.

        Parameters
        ----------
        path : str or path-like, default=None
            File to write, whose name ends in ``.csv`` or ``.json``. The JSON file also has the
            facts of the audit, such as its title, date and confidence level. If None, no file is
            written.

        Returns
        -------
        table : DataFrame
            Columns ``view``, ``group``, ``measure``, ``n_rows``, ``n_persons``, ``value`` with
            its interval, ``reference``, ``reference_value``, ``difference``, ``verdict`` and
            ``is_suppressed``. The reference is the group named by ``reference=``. Otherwise it is
            "all", which stands for all rows. With a named group the difference has an interval and
            a p-value.

        Notes
        -----
        The verdict is "beyond chance" or "within chance". With a named group it is about the
        difference from that group. Without one, it is about the clearest pair of groups: if the
        pair is beyond chance, its two groups have this verdict, and the others are "not judged".
        Measures that no metric of the audit compares are "not judged" either. Further verdicts are
        "reference", "undefined", "not compared" (few people, or an unknown group) and "not shown".

        Examples
        --------
        >>> from skfair.datasets import make_group_scores
        >>> from skfair.report import audit
        >>> y, scores, groups = make_group_scores(2000, random_state=0)
        >>> found = audit(y, scores > 0, sensitive_features={"group": groups})
        >>> table = found.bias_profile()
        >>> table.loc[table["measure"] == "selection_rate", ["group", "reference"]].values.tolist()
        [['a', 'all'], ['b', 'all']]
        """
        table = profile_of(self)
        if path is not None:
            write_profile(self, table, path)
        return table

    _rendered = render

    def __repr__(self) -> str:
        lines = [f"{self.title}: {self.size}", *verdicts_of(self)]
        return "\n".join(map(visible, lines))


def audit(
    y_true: ColumnLike | None,
    y_pred: ColumnLike | None = None,
    y_score: ColumnLike | None = None,
    *,
    sensitive_features: ColumnsLike,
    before: Any = None,
    conditional_on: ColumnsLike | None = None,
    metrics: Sequence[str] | None = None,
    sample_weight: ColumnLike | None = None,
    units: ColumnLike | None = None,
    pos_label: ClassLabel = None,
    pos_label_true: ClassLabel = None,
    task: TaskName = "auto",
    threshold: float | None = None,
    confidence: float = 0.95,
    depth: int = 3,
    min_size: int = 30,
    n_simulations: int = 500,
    preset: Preset | None = None,
    reference: ClassLabel | Mapping[str, Any] = None,
    unknown: ClassLabel | Sequence[Any] = None,
    min_group_size: float | None = None,
    suppress_below: float | None = None,
    title: str = "Fairness audit",
    about: Mapping[str, str] | None = None,
    random_state: Seed = 0,
) -> Audit:
    """Audit predictions by group: rates, gaps, scores, subgroups, and what a change costs.

    Every attribute is looked at by itself and all of them crossed. Each gap comes with an interval
    and with what chance alone would show for groups of these sizes. What is printed is a verdict on
    each attribute, in five lines at most.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,) or None
        True labels or numbers; None leaves out what needs them.
    y_pred : array-like of shape (n_samples,), default=None
        Predicted labels or numbers.
    y_score : array-like of shape (n_samples,), default=None
        Scores, larger for the positive class. Probabilities are checked for calibration.
    sensitive_features : array-like of shape (n_samples,) or (n_samples, n_attributes)
        The group of each row; several columns are several attributes.
    before : array-like of shape (n_samples,), default=None
        Predictions of an earlier model, to compare with.
    conditional_on : array-like of shape (n_samples,) or (n_samples, n_columns), default=None
        What may explain a difference, such as a department. Gaps within its levels are reported
        beside those of all rows.
    metrics : list of str, default=None
        Names of gaps to report, such as ``"demographic_parity_difference"``. None is a choice that
        suits the task.
    sample_weight : array-like of shape (n_samples,), default=None
        Weights of the rows. Intervals then use effective numbers of rows.
    units : array-like of shape (n_samples,), default=None
        Which rows belong together, such as the person of each visit. Rows of the same person are
        not independent: intervals, p-values and searches take them for as many independent rows as
        say as much, and small groups are those of few persons. A person may have rows in several
        groups. Without units every row is taken for another person, and the audit is too sure
        where people repeat.
    pos_label : label, default=None
        The class that counts as positive. None is for labels that say it themselves: 0 and 1, -1
        and 1, and booleans. Others, such as 1 and 2 or text, need it.
    pos_label_true : label, default=None
        The class of ``y_true`` that counts as positive, if its labels are other words than those of
        ``y_pred``, such as "repaid" for decisions that are "granted".
    task : {"auto", "binary", "classes", "numbers"}, default="auto"
        What is predicted. By default fractions are numbers, two labels are decisions, and more
        labels are classes.
    threshold : float, default=None
        With scores and no predictions: rows with larger scores are decided positively.
    confidence : float, default=0.95
        Coverage of the intervals, and share of audits that find nothing if there is no disparity.
    depth : int, default=3
        How many attributes a searched subgroup may fix.
    min_size : int, default=30
        Smallest number of rows of a subgroup that is searched. With units, persons are counted: one
        with rows in k combinations of groups counts as 1/k in each of them.
    n_simulations : int, default=500
        Number of simulated samples behind intervals, noise and p-values. More make smaller
        p-values possible; the smallest is 1 divided by this number plus 1.
    preset : {"ll144", "ugesp", "ecoa"}, default=None
        Adds the table of a rule of law, as ``impact``: impact ratios (New York City Local Law 144),
        adverse impact by the four-fifths rule with z and Fisher's exact test (Uniform Guidelines on
        Employee Selection Procedures), or ratios to a control group (Equal Credit Opportunity Act).
        With "ll144", scores without predictions are compared by their median. Groups that the
        rule sets apart are compared nowhere in the audit.
    reference : level or dict, default=None
        The group that others are compared with, such as ``"male"``; of several attributes
        ``{"sex": "male", "race": "White"}``. Adds the signed differences from it.
    unknown : level or list of levels, default=None
        Levels that stand for an attribute that is not known. They are listed and not compared.
        With ``numpy.nan`` or None among them, rows without a value are the group "missing".
    min_group_size : int, default=None
        Smaller groups are listed with their numbers, and left out of gaps and verdicts. None is 30,
        or with preset "ll144" or "ugesp" what the rule says. With units, persons are counted.
    suppress_below : int, default=None
        Smaller groups are not shown, because their numbers would say something about single people.
        Rows of such a group of one attribute are left out of all numbers; of crossed groups, others
        from which they could be computed are hidden as well. Within levels of ``conditional_on``
        no smaller group is compared. Rates by class, such as the true positive rate, and accuracies
        are not shown of a group with fewer people of a class, and they count as undefined. None is
        10, or 1 with preset "ll144", which asks for the numbers of all categories. With units,
        persons are counted as for ``min_size``.
    title : str, default="Fairness audit"
        Title of the report.
    about : dict, default=None
        Facts for the head of the report by name, such as ``{"model": "Score card 3", "period":
        "June 2026", "prepared by": "Risk control"}``. Of a "file" the SHA-256 is added.
    random_state : int, RandomState instance or None, default=0
        Seed of the simulations. The default makes the same audit of the same data each time.

    Returns
    -------
    found : Audit
        Tables, and ``to_html``, ``to_markdown``, ``to_json``.

    See Also
    --------
    skfair.metrics.fairness_report : All gaps of labels and scores with standard errors.

    Notes
    -----
    O(n) in the rows for each measure; Dask collections are read in two passes over their blocks.
    Intervals are for one number each; with many groups some of them miss. P-values cover all
    groups, attributes, metrics and subgroups, so that few of the audits without a disparity find
    one.

    Examples
    --------
    >>> from skfair.datasets import make_group_scores
    >>> from skfair.report import audit
    >>> y, scores, groups = make_group_scores(2000, random_state=0)
    >>> found = audit(y, scores > 0, scores, sensitive_features={"group": groups})
    >>> found.gaps.loc[0, ["view", "metric"]].tolist()
    ['group', 'demographic_parity_difference']
    """
    check_text([title], "The title")
    options = read_options(
        random_state=random_state,
        metrics=metrics,
        confidence=confidence,
        depth=depth,
        min_size=min_size,
        n_simulations=n_simulations,
        preset=preset,
        reference=reference,
        unknown=unknown,
        min_group_size=min_group_size,
        suppress_below=suppress_below,
    )
    raw = RawRows(y_true, y_pred, y_score, before, sample_weight, units)
    is_scoring = preset == "ll144" and y_pred is None and threshold is None
    groups = sensitive_features, conditional_on
    n_rows = check_raw_rows(raw, *groups, 0.0 if is_scoring else threshold)
    if n_rows is None:
        sample, read_task, options = read_blocks(
            raw, groups, options, task, (pos_label, pos_label_true), threshold
        )
    else:
        if is_scoring:
            threshold = float(np.median(check_scores(y_score)))
            options = options._replace(median=threshold)
        how: dict[str, Any] = {"threshold": threshold, "like": check_aligned(**raw.named())}
        read_task = find_task(survey_rows(raw.labels(), task), task, pos_label, pos_label_true)
        missing = MISSING if MISSING in options.unknown else None
        sample = read_table(raw, read_task, *groups, missing=missing, **how)
    return audit_table(sample, read_task, options, title, read_about(about), raw.names(), threshold)


def audit_table(
    sample: GroupTable,
    task: Task,
    options: Options,
    title: str,
    about: dict[str, str],
    columns: dict[str, str],
    threshold: float | None,
) -> Audit:
    """Compute all tables of an audit from the sums of its rows."""
    n_rows, shown = int(sample.counts.sum()), Shown(sample, options)
    sample, views = shown.sample, shown.views
    calibration, of_scores = score_report(sample, views, task, options)
    rates = [rates_table(sample, views, options.confidence), *of_scores]
    searched = searched_of(task, set(sample.measures))
    tables = tables_of(sample, options.depth, options.min_size)
    unjudged, simulated, n_subgroups = search_subgroups(sample, tables, searched, options)
    asked = gaps_of(task, options.metrics, set(sample.measures))
    gaps, rarest, chances = find_gaps(sample, views, asked, options, simulated)
    subgroups, n_beyond = judge_subgroups(unjudged, simulated, rarest, options)
    return Audit(
        **head_of(sample, options, title, n_rows - int(sample.counts.sum()), shown.hidden),
        about=about,
        columns={name: own for name, own in columns.items() if name != "units" or sample.units},
        decision=decision_of(task, columns, options.median or threshold),
        task=task.kind,
        conditional_on=list(sample.within),
        rates=shown.without_hidden(pd.concat(rates, ignore_index=True)),
        gaps=gaps,
        subgroups=shown.subgroups(tables, subgroups),
        n_subgroups=n_subgroups,
        n_beyond_chance=n_beyond,
        calibration=shown.without_hidden(calibration),
        preset=options.preset or "",
        rule=rule_text(options),
        impact=shown.without_hidden(impact_table(sample, views, options)),
        signed=signed_table(views, options, chances),
    )
