"""Audits: the effects of predictions on groups, in one object to read, save and hand on.

There are three entrances:

- :func:`audit` reads columns of predictions. It visits the rows once and adds them up by cell, a
  combination of levels of all attributes (:mod:`skfair.groups.table`).
- :meth:`Audit.from_estimator` predicts with a model, and passes the predictions to :func:`audit`.
- :func:`audit_table` computes all tables from the sums. :func:`audit` calls it, and so does
  ``python -m skfair audit``, which adds up the blocks of a file itself.

:class:`Audit` is the result. Its fields are stored in :mod:`skfair.report.results.result`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, Literal, Self

import pandas as pd
from sklearn.base import is_regressor

from skfair._typing import ClassLabel, ColumnLike, ColumnsLike, MatrixLike, Seed
from skfair.groups.attributes import check_aligned
from skfair.groups.cohort import cohort_of, columns_for, given_columns, kinds_of
from skfair.groups.cohort_calls import takes_cohort
from skfair.groups.cohort_rows import cut_at, median_of, refuse_kinds
from skfair.groups.compared_groups import Reference
from skfair.groups.labels import TaskName
from skfair.groups.limits import changes_line
from skfair.groups.named_columns import columns_of_blind
from skfair.groups.table import GroupTable
from skfair.groups.telling_columns import index_columns, warn_of_group_columns, warn_of_people
from skfair.metrics.own_metrics import GroupMetric
from skfair.records.decision_memo import Memo
from skfair.records.record import Paths, several
from skfair.report.auditing.engine_numbers import read_numbers
from skfair.report.auditing.impact import impact_table, rule_text
from skfair.report.auditing.own_measures import own_of, warn_of_unknown, with_own
from skfair.report.auditing.people import UnitsRule, check_units_rule, one_row_each
from skfair.report.auditing.record import asked_checks, in_engine, in_memory, write_audit
from skfair.report.results.checks import is_memo
from skfair.report.results.pages import render
from skfair.report.results.result import COUNTED, AuditTables, empty_table, head_of
from skfair.report.results.sentences import (
    decision_of,
    lead_of,
    read_about,
    reading_of,
    verdicts_of,
)
from skfair.report.tables.options import Options, read_options
from skfair.report.tables.reading import (
    check_columns,
    find_task,
    names_of,
    read_rows,
    survey_rows,
)
from skfair.report.tables.small_groups import Shown
from skfair.report.tables.subgroups import judge_subgroups, search_subgroups, tables_of
from skfair.report.tables.sums import add_up, read_blocks
from skfair.report.tables.tasks import Task, gaps_of, searched_of
from skfair.report.tables.views import (
    find_gaps,
    rates_table,
    score_report,
    signed_table,
    warn_of_filled,
    without_outcomes,
)
from skfair.report.words import law_of, law_warning
from skfair.utils.docs import documented
from skfair.utils.response import SCORE_METHODS, get_response, positive_class
from skfair.utils.text import check_text, visible

Preset = Literal["ll144", "ugesp", "ecoa", "uk"]


@documented
class Audit(AuditTables):
    """Result of a fairness audit, as returned by :func:`audit`.

    All tables are plain DataFrames. Their column ``view`` names an attribute, or several crossed
    attributes (``"sex x age"``). The empty view stands for all rows.

    Parameters
    ----------
    title : str
        Title of the report.
    about : dict
        Facts that the user stated.
    columns : dict
        Names of the columns in the data.
    decision : str
        Description of a positive decision, in the words of the data.
    reading : str
        How the labels were read, such as "read as numbers from 1 to 10", or "read as 3 classes;
        positive: Yes, against No, unclear".
    made_on : str
        Date of the audit.
    version : str
        Version of the package that made the audit.
    n_rows : int
        Number of rows.
    n_left_out : int or None
        Number of rows that are left out because their groups are too small. It is None if the
        number would reveal how many rows one of these groups has.
    n_units : int or None
        Number of units (persons), if ``units`` were given.
    n_in_several : dict or None
        Number of units that have rows in several groups of an attribute, by attribute.
    attributes : list of str
        Names of the sensitive attributes.
    confidence : float
        Confidence level of all intervals.
    n_simulations : int
        Number of simulated samples from which p-values are computed. The smallest possible p-value
        is 1 divided by this number plus 1.
    min_group_size : float
        Size below which groups are not compared.
    suppress_below : float
        Size below which groups are not shown.
    hidden : DataFrame
        The groups that are not shown, with the columns ``view`` and ``group``.
    rates : DataFrame
        The value of each measure in each group, with the columns ``view``, ``group``, ``n``,
        ``measure``, ``value``, ``value_low`` and ``value_high``. The column ``apart`` is "small" or
        "unknown" for groups that are not compared, and empty otherwise. With units, there is also
        ``n_units``. The measures of the earlier model begin with ``before:``.
    gaps : DataFrame
        Differences and ratios between groups, with one row per view, model (``now`` or ``before``)
        and metric. Each row has the ``value`` with its interval, the two groups that are furthest
        apart, the groups that are ``left_out`` because their rate is undefined or hidden, and the
        groups, and levels of ``control_features``, that have ``too_few`` people to be compared or
        shown. ``noise_mean`` and ``noise_upper`` show the difference of these two groups that
        arises by chance. ``p_value`` is the p-value of the most significant pair of groups,
        corrected for all comparisons of the audit. ``is_beyond_chance`` tells whether it is
        significant, and ``clear_first`` and ``clear_second`` name this pair. A ratio has the
        verdict of the difference of the same rates. ``is_conditional`` is True for comparisons
        within levels of ``control_features``.
    lead : list of str
        Metrics with which the verdicts begin.
    task : {"binary", "classes", "numbers"}
        Kind of predictions that were audited.
    control_features : list of str
        Names of the attributes within whose levels groups were also compared.
    subgroups : DataFrame
        The most extreme subgroups of each measure, with p-values that are corrected for the whole
        search and for all gaps.
    n_subgroups : int
        Number of subgroups that were searched.
    n_beyond_chance : int
        Number of comparisons of subgroups that are statistically significant.
    calibration : DataFrame
        Mean target and mean score of each group, in up to ten bins with about the same number of
        its rows.
    strata : DataFrame
        The value of each compared measure in each group within each level of ``control_features``,
        with the columns of ``rates`` and ``stratum``, the level. Up to 20 levels are listed, the
        largest ones. It is empty without ``control_features``.
    within : DataFrame
        Differences within levels of ``control_features``, with one row per attribute, measure and
        pair of groups. ``difference`` is the value of ``group`` minus the value of ``other``,
        averaged over the levels that have both, with a weight of a b / (a + b) for a and b rows of
        the two. ``n_strata`` is the number of these levels, ``n_higher`` and ``n_lower`` say in how
        many of them ``group`` is higher and lower, and ``n_clear_higher`` and ``n_clear_lower`` in
        how many this is significant. ``n_not_compared`` levels have too few rows of one of them.
        ``p_value`` is the p-value of the average, and ``overall_p_value`` is the p-value of the
        difference over all rows. Both are corrected like the p-values of ``gaps``.
    preset : str
        Name of the rule of law whose table was requested. It is empty without a preset.
    rule : str
        Text of this rule. It is empty without a preset.
    impact : DataFrame
        The table of that rule, with one row per view and group. It has the ``status`` of the group
        ("compared", "reference", "unknown", or "small" for groups of less than 2%), numbers of
        people, rates, the ``impact_ratio``, and the tests of
        :func:`skfair.metrics.selection_tests`. It is empty without a preset.
    signed : DataFrame
        Differences from the reference group, with one row per measure and other group.
        ``difference`` is the value of the group minus the value of the reference group, with its
        interval. ``p_value`` is corrected like the p-values of ``gaps``. The table is empty without
        a reference group.

    See Also
    --------
    skfair.metrics.group_report : Compute only the rates of each group.

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
            A fitted classifier or regressor. If a binary classifier has ``predict_proba`` or
            ``decision_function``, its scores are audited too.
        X : array-like of shape (n_samples, n_features)
            The rows to audit, preferably rows on which the model was not fitted.
        y : array-like of shape (n_samples,)
            True labels or numbers.
        before : estimator, default=None
            The fitted model that ``model`` replaces, such as the same model without limits. If
            given, the selection rates of both models are reported, overall and by group, together
            with the decisions that changed. If None, the head of the report states the changes that
            the limits of ``model`` made in training.
        pos_label : label, default=None
            The positive class. If None, the positive class of the model is used, which is usually
            the second of its two classes.
        **options
            Further arguments, which are passed to :func:`audit`.

        Returns
        -------
        found : Audit
            The audit.
        """
        # Several classes, if they were asked for, have no positive one and no scores.
        is_binary = len(getattr(model, "classes_", ())) == 2 and options.get("task") != "classes"
        if is_binary:
            pos_label = positive_class(model, pos_label)
        names = "sample_weight", "control_features", "units"
        by_row = {name: options.get(name) for name in names}
        check_aligned(X=X, y=y, sensitive_features=sensitive_features, **by_row)
        groups: dict[str, Any] = {"sensitive_features": sensitive_features}
        warn_of_group_columns(columns_of_blind(model, X), sensitive_features)
        responses = {"y_pred": get_response(model, X, "predict", **groups)}
        if before is not None:
            responses["before"] = get_response(before, X, "predict", **groups)
        methods = [name for name in SCORE_METHODS[::-1] if hasattr(model, name)]
        if is_binary and methods:
            responses["y_score"] = get_response(model, X, methods, pos_label=pos_label, **groups)
        if is_regressor(model):
            options = {"task": "numbers", **options}
        own = {"model": type(model).__name__}
        # Without numbers by group, because groups may be too small to show.
        if changes := getattr(model, "changes_", None):
            own["limits changed in training"] = changes_line(changes, of_groups=False)
        own |= dict(options.pop("about", None) or {})
        audited = audit(y, **responses, **groups, pos_label=pos_label, about=own, **options)
        made = cls(**audited.fields())
        return made if audited._source is None else made._made_of(audited._source)

    def record(
        self,
        path: str | PathLike[str],
        *,
        fail_if: Memo | Sequence[Memo] = (),
        allow_undefined: bool = False,
        after: Paths = (),
        force: bool = False,
    ) -> None:
        """Write a record of the audit, from which others can compute it again.

        The record is a JSON file. It holds what was asked, digests of the columns that were read,
        every number and sentence of the audit, the outcome of checks, the state of the law, the
        versions of the packages, and the SHA-256 of the files that came before it. ``python -m
        skfair verify record.json --data rows.csv`` computes the audit again and says what differs.
        See :doc:`/how_to/records`.

        Parameters
        ----------
        path : str or path-like
            File to write, whose name ends in ``.json``. The random key of the digests is written
            beside it, to a file that ends in ``.key`` and that only you may read.
        fail_if : str, path-like, dict or sequence of these, default=()
            Conditions or decision memos to check, as in :meth:`check`. The record has the outcomes.
        allow_undefined : bool, default=False
            Whether checks leave out groups that cannot be compared, as in :meth:`check`.
        after : str, path-like or sequence of these, default=()
            Files that came before, such as the memo of a committee or the previous record. A memo
            file in ``fail_if`` is one of them in any case.
        force : bool, default=False
            Whether to replace a record and a key that exist already. Without its key, the digests
            of the old record can never be compared again.

        Notes
        -----
        The audit is made again before it is recorded, so recording takes as long as the audit. An
        audit keeps the columns that it was made of, until it is pickled, for this purpose only. If
        they were changed in the meantime, an error says so. An audit with more than 20,000
        simulations has no record, because others could not compute it again in reasonable time.

        Examples
        --------
        >>> import json, tempfile
        >>> from pathlib import Path
        >>> from skfair.datasets import make_group_scores
        >>> from skfair.report import audit
        >>> y, scores, groups = make_group_scores(2000, random_state=0)
        >>> found = audit(y, scores > 0, sensitive_features={"group": groups})
        >>> file = Path(tempfile.mkdtemp()) / "record.json"
        >>> found.record(file, fail_if=["demographic_parity_difference > 0.5"])
        >>> json.loads(file.read_text())["checks"][0]["outcome"]
        'pass'
        """
        if self._source is None:
            raise ValueError(
                "The audit was read from a file or copied, so its rows are not known. Call record "
                "on the result of audit() itself."
            )
        conditions = several(fail_if)
        memos = [own for own in conditions if is_memo(own) and not isinstance(own, Mapping)]
        checks = asked_checks(conditions, allow_undefined)
        before = [*memos, *several(after)]
        write_audit(self, Path(path), checks, before, force)

    _rendered = render

    def __repr__(self) -> str:
        verdicts = verdicts_of(self)
        warning = law_warning(law_of(self.preset))
        lines = [self.headline, *verdicts, *([warning] if warning else [])]
        return "\n".join(map(visible, lines))


@takes_cohort
def audit(
    y_true: ColumnLike | None,
    y_pred: ColumnLike | None = None,
    *,
    y_score: ColumnLike | None = None,
    sensitive_features: ColumnsLike,
    before: Any = None,
    control_features: ColumnsLike | None = None,
    metrics: Sequence[str | GroupMetric] | None = None,
    lead: str | None = None,
    sample_weight: ColumnLike | None = None,
    units: ColumnLike | None = None,
    pos_label: ClassLabel = None,
    pos_label_true: ClassLabel = None,
    task: TaskName = "auto",
    threshold: float | None = None,
    reference: Reference = "pairwise",
    depth: int = 3,
    confidence: float = 0.95,
    preset: Preset | None = None,
    units_rule: UnitsRule = "any",
    n_simulations: int = 500,
    unknown: ClassLabel | Sequence[Any] = None,
    min_group_size: float | None = None,
    suppress_below: float | None = None,
    title: str = "Fairness audit",
    about: Mapping[str, str] | None = None,
    random_state: Seed = 0,
) -> Audit:
    """Audit the predictions of a model by group.

    The audit reports rates, differences between groups, scores, and the subgroups with the most
    extreme rates. It looks at each attribute separately, and at the intersections of all
    attributes. Each difference has a confidence interval and a p-value, so that differences that
    groups of these sizes show by chance can be recognised. Printing the audit shows a verdict on
    each attribute, in at most five lines below the title. If there are more attributes than lines,
    one line sums up the remaining attributes. If all rows of a group have the same true label, or
    the same decision, a line names the attribute: it may be the outcome under another name. With a
    ``preset``, a warning follows if its law may change soon or was last looked up more than six
    months ago.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,) or None
        True labels or numbers. If None, measures that need them are left out.
    y_pred : array-like of shape (n_samples,), default=None
        Predicted labels or numbers.
    y_score : array-like of shape (n_samples,), default=None
        Scores, which are larger for the positive class. The calibration of probabilities is
        checked: with ``y_true``, the mean residual of each group (outcome minus probability) is
        compared, and a significant difference is one of the verdicts.
    sensitive_features : array-like of shape (n_samples,) or (n_samples, n_attributes)
        The group of each row. Each column is one sensitive attribute.
    before : array-like of shape (n_samples,), default=None
        Predictions of an earlier model, with which ``y_pred`` is compared.
    control_features : array-like of shape (n_samples,) or (n_samples, n_columns), default=None
        An attribute that may legitimately explain a difference, such as the department. Groups are
        then also compared within its levels. The verdict on an attribute begins with these levels,
        says in how many of them which group is higher, and names a reversal: a group may be ahead
        in each department and behind over all rows (Simpson's paradox).
    metrics : list of str or GroupMetric, default=None
        Names of the metrics to report, such as ``"demographic_parity_difference"``, and any metric
        of a single group as ``make_group_metric(f1_score)``, which is then called
        ``"f1_score_difference"``. F scores, precision and recall of two classes are rates. Other
        standard errors come from up to 200 resamples of the rows or units, which must be in memory.
        If None, metrics that suit the task are chosen.
    lead : str, default=None
        Name of the metric with which the verdicts begin, a difference of one rate such as
        ``"false_negative_parity_difference"``. If None, they begin with the true and false positive
        rates if there are true labels, two classes and no ``preset``, and otherwise with selection
        rates, mean residuals or mean predictions.
    sample_weight : array-like of shape (n_samples,), default=None
        Weights of the rows. If weights are given, intervals use effective numbers of rows.
    units : array-like of shape (n_samples,), default=None
        Labels of rows that belong together, for example the person behind each visit. Rows of the
        same person are not independent, so intervals, p-values and searches use the number of
        independent rows that would carry the same information. The sizes of groups are then numbers
        of persons. A person may have rows in several groups, or be one CV under several names. The
        differences between these groups then account for what they have in common. Without
        ``units``, every row is treated as a different person, which overstates the confidence if
        people occur more than once. A preset counts each person once, see ``units_rule``.
    pos_label : label, default=None
        The class that counts as positive. All other labels, one or several, are the rest with which
        it is compared. It may be None if the labels are 0 and 1, -1 and 1, or booleans. It is
        required for two other labels, such as 1 and 2 or strings. With more labels, None compares
        the share of each class.
    pos_label_true : label, default=None
        The class of ``y_true`` that counts as positive, if its labels differ from the labels of
        ``y_pred``. For example, loans that are "granted" may later be "repaid".
    task : {"auto", "binary", "classes", "numbers"}, default="auto"
        Kind of predictions. "auto" treats numbers with fractions as "numbers", and also more than
        five whole numbers if ``y_true`` is None, such as the scores from 1 to 10 of a judge. Two
        labels, or a ``pos_label`` among several, are "binary", and more labels are "classes". A
        warning follows if whole numbers may be either. The first line of the audit says how labels
        were read.
    threshold : float, default=None
        Threshold of scores, if no predictions are given. Rows with larger scores are predicted
        positive.
    reference : {"pairwise"}, level or dict, default="pairwise"
        The group with which other groups are compared, such as ``"male"``, or ``{"sex": "male",
        "race": "White"}`` for several attributes. If given, ``gaps`` and checks compare the other
        groups with this one only, unless a ``preset`` compares with the most selected group.
        Signed differences from the reference group are added.
    depth : int, default=3
        Largest number of attributes that define a subgroup in the search.
    confidence : float, default=0.95
        Confidence level of the intervals. If there is no disparity, it is also the probability that
        an audit reports none as significant.
    preset : {"ll144", "ugesp", "ecoa", "uk"}, default=None
        Rule of law whose table is added as ``impact``. "ll144" gives impact ratios (New York City
        Local Law 144), "ugesp" gives adverse impact by the four-fifths rule with z and Fisher's
        exact test (Uniform Guidelines on Employee Selection Procedures), "ecoa" gives ratios to a
        control group (Equal Credit Opportunity Act), and "uk" gives impact ratios without a
        threshold (Equality Act 2010). The page says for each question of the rule which number
        answers it, and what no number can answer. With "ll144", scores without predictions are
        compared by their median. Groups that the rule excludes are not compared anywhere in the
        audit.
    units_rule : {"any", "last"}, default="any"
        How a ``preset`` counts a person with several rows, who is named by ``units``. With "any", a
        person is selected if any of their rows is, and with "last" if their last row is. The other
        columns are those of the row that is counted. The first line of the printed audit says which
        rule was used. Without a preset all rows are counted.
    n_simulations : int, default=500
        Number of simulated samples from which intervals, noise and p-values are computed. The
        smallest possible p-value is 1 divided by this number plus 1, so more simulations allow
        smaller p-values.
    unknown : level or list of levels, default=None
        Levels that mean that the attribute is unknown. They are listed, but not compared. If they
        include ``numpy.nan`` or None, rows without a value form the group "missing".
    min_group_size : int, default=None
        Smallest size of a group that is compared. Smaller groups are listed with their numbers, but
        are left out of differences, verdicts and the search of subgroups. If None, it is 30, or the
        size that the rule sets with preset "ll144" or "ugesp", which does not apply to the search.
        With units, persons are counted, and a person with rows in k combinations of groups counts
        as 1/k in each of them.
    suppress_below : int, default=None
        Smallest size of a group that is shown, because the numbers of smaller groups could reveal
        information about single people. If a group of one attribute is smaller, its rows are left
        out of all numbers. If an intersection is smaller, it is hidden together with other groups
        from which its numbers could be computed. Within levels of ``control_features``, smaller
        groups are not compared. If a group has fewer people of a class, rates by class, such as the
        true positive rate, and accuracies are hidden and count as undefined. If None, it is 10, or
        1 with preset "ll144", which requires the numbers of all categories. With units, persons are
        counted as for ``min_group_size``.
    title : str, default="Fairness audit"
        Title of the report.
    about : dict, default=None
        Facts for the head of the report, such as ``{"model": "Score card 3", "period": "June 2026",
        "prepared by": "Risk control"}``. If a "file" is named, its SHA-256 is added.
    random_state : int, RandomState instance or None, default=0
        Seed of the simulations. With the default, audits of the same data have the same numbers.

    Returns
    -------
    found : Audit
        The audit, with its tables and the methods ``to_html``, ``to_markdown`` and ``to_json``.

    See Also
    --------
    skfair.metrics.fairness_report : Table of differences, ratios and gaps with standard errors.

    Notes
    -----
    A :class:`skfair.Cohort` takes the place of all columns. With ``data=``, a table of any library,
    columns are named, ``audit(data=table, y_pred="approved", sensitive_features=["sex"])``, and a
    lazy table is counted by its engine (:doc:`/how_to/warehouse`).

    Each measure costs O(n) for n rows, and Dask collections are read in two passes over their
    blocks. Each interval holds for one number, so with many groups some intervals do not contain
    the true value. P-values are corrected for all groups, attributes, metrics and subgroups: if
    there is no disparity, an audit reports a significant one with a probability of at most
    1 - ``confidence``.

    Examples
    --------
    >>> from skfair.datasets import make_group_scores
    >>> from skfair.report import audit
    >>> y, scores, groups = make_group_scores(2000, random_state=0)
    >>> found = audit(y, scores > 0, y_score=scores, sensitive_features={"group": groups})
    >>> found.gaps.loc[0, ["view", "metric"]].tolist()
    ['group', 'demographic_parity_difference']
    """
    arguments = dict(locals())  # the arguments are kept for Audit.record
    people = cohort_of(**arguments)
    # With this preset, scores without decisions are compared with their median. Until it is known,
    # the check of the rows gets any number in its place.
    is_scoring = preset == "ll144" and people.y_pred is None and threshold is None
    cut = threshold
    if kinds_of(people) is not None and people.y_score is not None and people.y_pred is None:
        cut = median_of(people) if is_scoring else threshold
        people = cut_at(people, cut)
    arguments |= columns_for(people, arguments)
    columns, kinds = given_columns(people), kinds_of(people)
    check_text([title], "The title")
    options = read_options(
        random_state=random_state,
        metrics=metrics,
        lead=lead,
        confidence=confidence,
        depth=depth,
        n_simulations=n_simulations,
        preset=preset,
        reference=reference,
        unknown=unknown,
        min_group_size=min_group_size,
        suppress_below=suppress_below,
    )
    check_units_rule(units_rule, preset, people.units)
    n_rows, counted, rows = check_columns(columns, 0.0 if is_scoring else threshold), "", None
    names = names_of(columns)
    if n_rows is None:  # the rows are Dask collections
        sample, read_task, options = read_blocks(people, options, task, pos_label_true, threshold)
    elif kinds is not None and kinds.are_numbers:
        given = {
            "threshold": threshold,
            "pos_label": people.pos_label,
            "pos_label_true": pos_label_true,
            "preset": preset,
        }
        sample, read_task = read_numbers(people, kinds, task, options, given)
    else:
        if is_scoring:
            threshold = median_of(people) if cut is None else cut
            options = options._replace(median=threshold)
        if people.units is None:
            warn_of_people(index_columns(*columns.values()))
        survey = survey_rows(people, task, threshold)
        read_task = find_task(survey, task, people.pos_label, pos_label_true, given=columns)
        if preset is not None and people.units is not None:
            refuse_kinds(people)  # it picks rows
            people, counted = one_row_each(people, read_task, threshold, units_rule)
        rows = read_rows(people, read_task, threshold, options.unknown)
        sample = add_up(rows, read_task, kinds)
    warn_of_filled(sample)
    own = own_of(metrics)
    if own:
        sample, options = with_own(sample, own, people, rows, read_task, options)
    facts = read_about({**(about or {}), COUNTED: counted} if counted else about)
    if kinds is not None:
        beside = {name: getattr(kinds.table, name) for name in kinds.table.beside}
        names = {argument: own for argument, own in {**names, **beside}.items() if own}
    found = audit_table(sample, read_task, options, title, facts, names, threshold)
    warn_of_unknown(found.gaps, own)
    source = in_memory(audit, arguments) if kinds is None else in_engine(audit, people, arguments)
    return found._made_of(source)


def audit_table(
    sample: GroupTable,
    task: Task,
    options: Options,
    title: str,
    about: dict[str, str],
    columns: dict[str, str],
    threshold: float | None,
) -> Audit:
    """Compute all tables of an audit from the sums of its rows.

    ``columns`` has, by argument of :func:`audit`, the name of the column in the data. Only
    ``sample`` and the views of ``shown`` are used after the first two lines, so nothing is computed
    from rows that may not be shown. The order matters: subgroups are simulated before the gaps and
    judged after them, because p-values cover both, and strata come last, see :class:`Shown`.
    """
    n_rows, shown = int(sample.counts.sum()), Shown(without_outcomes(sample), options)
    sample, views = shown.sample, shown.views
    calibration, of_scores = score_report(sample, views, task, options)
    rates = [rates_table(sample, views, options.confidence), *of_scores]
    searched = searched_of(task, set(sample.measures))
    tables = tables_of(sample, options.depth, options.min_searched)
    unjudged, simulated, n_subgroups = search_subgroups(sample, tables, searched, options)
    asked = gaps_of(task, options.metrics, set(sample.measures), options.own_gaps)
    if options.lead is not None and options.lead not in [gap.name for gap in asked]:
        asked += gaps_of(task, [options.lead], set(sample.measures), options.own_gaps, "lead")
    gaps, within, rarest, chances = find_gaps(sample, views, asked, options, simulated)
    subgroups, n_beyond = judge_subgroups(unjudged, simulated, rarest, options)
    subgroups = shown.subgroups(tables, subgroups)
    return Audit(
        **head_of(sample, options, title, n_rows - int(sample.counts.sum()), shown.hidden),
        about=about,
        columns={name: own for name, own in columns.items() if name != "units" or sample.units},
        decision=decision_of(task, columns, options.median or threshold),
        reading=reading_of(task, columns, options.median or threshold),
        lead=lead_of(task, options, asked),
        task=task.kind,
        control_features=list(sample.within),
        rates=shown.without_hidden(pd.concat(rates, ignore_index=True)),
        gaps=gaps if len(gaps) else empty_table(Audit.schema()["properties"]["gaps"]),
        subgroups=subgroups,
        n_subgroups=n_subgroups,
        n_beyond_chance=n_beyond,
        calibration=shown.without_hidden(calibration),
        preset=options.preset or "",
        rule=rule_text(options),
        impact=shown.without_hidden(impact_table(sample, views, options, task.reading)),
        signed=signed_table(views, options, chances),
        within=within,
        strata=shown.strata(asked, options.confidence),
    )
