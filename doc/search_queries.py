"""What people search for who know the field, and the pages that answer: any of them is right.

``make doc`` searches the built site for each query (``built_pages.py``). ``conf.py`` makes an
``index`` entry of each query in ``ANSWERS``, so these are words and short phrases. The entries also
find the tasks below, by the words they share.
"""

# Page: words of the field, and names from other libraries.
ANSWERS = {
    "user_guide/concepts": """
        bias mitigation; mitigation; individual fairness; counterfactual fairness; sources
        of bias; allocation harm; quality of service harm; disparate treatment; GDPR; EU AI
        Act; independence; separation; sufficiency; impossibility; definitions of fairness;
        proxy variable; bias; harms; Diskriminierung
    """,
    "user_guide/rules": """
        four-fifths rule; 80 percent rule; disparate impact; disparate impact ratio;
        equalised odds; equalized odds; equal opportunity; demographic parity; predictive
        parity; constraint; fairness criterion; Simpson's paradox; bounded group loss; p%
        rule; minimum rate; choose a metric; which metric
    """,
    "user_guide/selective_labels": "selective labels; reject inference; missing outcomes",
    "how_to/choose_with_a_committee": "committee; stakeholders; decision memo",
    "how_to/legal_tables": """
        adverse impact; adverse impact ratio; impact ratio; NYC Local Law 144; EEOC; ECOA;
        hiring; Fisher's exact test
    """,
    "how_to/alternatives": """
        less discriminatory alternative; less discriminatory alternatives; LDA search; model
        multiplicity; would another model have been fairer; business necessity; fairer model
    """,
    "user_guide/arbitrariness": """
        arbitrary decisions; arbitrariness; predictive multiplicity; different seed; random
        seed; stability; reproducibility; randomised predictions; close calls
    """,
    "auto_examples/measure/plot_calibration": "calibration within groups; calibration",
    "user_guide/decisions": """
        reweighing; post-processing; pre-processing; threshold; thresholds; multiclass;
        multinomial; group-aware; group-blind; threshold optimizer; quota;
        ThresholdOptimizer; exact or relaxed equalized odds; balanced accuracy; cost matrix;
        random forest; any classifier; estimator without sample_weight; regression; salary;
        prices
    """,
    "user_guide/constrained_erm": """
        in-processing; limit; multiplier; Lagrange multiplier; satisfied; violated;
        exponentiated gradient; ExponentiatedGradient; meaning of multipliers
    """,
    "user_guide/groups": """
        BISG; intersectionality; gender; attribute missing at prediction; age; protected attribute;
        sensitive attribute; sensitive feature; intersectional groups; predict without
        sensitive attribute; race not recorded; non-binary; disability; several attributes;
        empty category; missing groups; two attributes; sensitive columns; one-hot encoded
        sensitive columns
    """,
    "user_guide/metrics": """
        disparity; balance; control features; confidence interval; selection rate; false
        omission rate; negative predictive value; undefined rate; zero_division; direction
        of a ratio; false positive rate; false negative rate; true positive rate; precision;
        survey weights; weighted samples; error bars for metrics; average odds difference
    """,
    "user_guide/metrics_of_scores": """
        statistical parity; noise floor; ROC AUC by group; calibration by group
    """,
    "user_guide/new_people": """
        p-value; statistical significance; sample size; certified; certificate; population;
        unseen data; guarantee; confidence; p-value of a difference; how many rows do I
        need; chance or real difference; noise
    """,
    "user_guide/monitoring": "drift; monitoring; alarm; production; alert; over time",
    "user_guide/audit": """
        audit csv; audit; false discovery rate; audit my csv; small groups; suppress
        small cells; dashboard; widget; Jupyter notebook; model card;
        anonymize; anonymise; bias audit; PDF; print a report; error bars
    """,
    "user_guide/audit_options": """
        Excel; compare models; dates; reference group; options of the command line
    """,
    "user_guide/glossary": "fairness through unawareness; differential privacy; roadmap",
    "user_guide/ranking": "learning to rank; exposure",
    "user_guide/model_selection": """
        grid search; custom metric; scorer; add my own metric; hyperparameters; tuning;
        GridSearchCV; cross-validation
    """,
    "references": "citation; bibtex; license",
    "install": "conda; install; offline; without internet",
    "how_to/boosting": """
        LightGBM; XGBoost; CatBoost; equalized odds with XGBoost; equalised odds with
        XGBoost
    """,
    "how_to/from_other_libraries": """
        fairlearn; MetricFrame; GridSearch; ThresholdOptimizer; ExponentiatedGradient;
        CorrelationRemover; epsilon; average odds difference; correlation remover;
        plot_model_comparison; compare models; AIF360; reject option; scikit-lego; sklego
    """,
    "how_to/a_year": "guarantee over time; recertify; refit after an alarm; non-inferiority",
    "developer/add_a_constraint": "add a constraint",
    "user_guide/choosing_a_limit": """
        choose a limit; which limit; epsilon; select epsilon; fairness accuracy trade-off;
        levelling down; leveling
        down; min_rate
    """,
    "user_guide/not_supported": """
        not supported; time series; survival analysis; GPU; recommender systems; clustering
        of mixed data; large language models; survival; multi-label; Spark; AutoML; Docker
        image; embeddings; uplift; insurance; must-link; cannot-link; socially fair k-means;
        rND; rKL; federated learning; scikit-learn version; sklearn version; Keras;
        TensorFlow; TFCO; PySpark; SQL; database; ordinal; ordinal classification; R package;
        Theil index; generalized entropy; consistency; multicalibration
    """,
    "user_guide/faq": """
        infeasible; slow; data leakage; error message; why infeasible; convergence warning;
        imbalanced data; class imbalance; reproducible results; random_state;
        sensitive_features error; Input X contains NaN; Input y contains NaN; different
        predictions every run; not deterministic; inconsistent numbers of samples; could not
        convert string to float; Expected 2D array; Unknown label type continuous; not
        fitted yet; failed to converge; unexpected keyword argument; missing argument
        sensitive_features; index labels; traceback; has no attribute coef_; debiased model
        more biased than original
    """,
    "how_to/board": "explain to the board; report for management",
    "how_to/closed_models": "language model; LLM; closed service; foundation models",
    "how_to/mapie": "MAPIE; conformal prediction; coverage by group",
    "how_to/case_study": "tutorial; case study; real data; COMPAS",
    "how_to/explain": """
        SHAP; explanation; feature importance; adverse action notice; reasons for a
        rejection; why was I refused
    """,
    "benchmarks/one_model": "latency",
    "how_to/pipelines": "text data; polars; missing values; missing groups; categorical columns",
    "how_to/deploy": "save model; model registry; retrain; Docker; container; serve",
    "choose": "which estimator",
    "changelog": "release",
    "user_guide/partial_fairness": "top 20 percent; shortlist",
    "user_guide/networks_and_streams": """
        sample weights; PyTorch; training loop; partial_fit; neural network; deep learning
    """,
    "benchmarks/traps": "wrong number; wrong input",
    "how_to/metadata_routing": """
        feature selection; weights in a pipeline; one-vs-rest; metadata routing; stacking
    """,
    "user_guide/fair_kmeans": """
        k-means; sizes of clusters; size limits; size-constrained k-means; customer segments
    """,
    "quickstart": "credit scoring; first example; loan approval example",
    "developer/add_a_loss": "own loss; custom loss",
    "how_to/big_data": "memory; large data",
    "how_to/dask": "larger than memory",
    "how_to/onnx": "ONNX",
    "how_to/mlflow": "MLflow; experiment tracker",
    "how_to/repeated_measurements": "repeated measurements; same person several times; readmission",
    "how_to/language_models": "language model; LLM; name swapping; paired data; McNemar",
    "how_to/datasets": "data sets; Adult; simulated data",
}
# Page: tasks as people type them, in reviews of the site and in the trackers of other libraries.
# They are no index entries: each has to be found by its words.
TASKS = {
    "user_guide/faq": """
        'FairDecisionClassifier' object has no attribute coef_; debiased model is more
        biased than the original; predict requires sensitive_features error; imbalanced
        data; reproducible results random_state
    """,
    "user_guide/metrics": """
        confidence interval of selection rate; false omission rate difference; undefined
        true positive rate of a group; ratio larger than 1 with a reference group; false
        positive rate by race
    """,
    "how_to/metadata_routing": """
        feature selection; weights in pipeline; one-vs-rest around a constrained model
    """,
    "user_guide/audit": "anonymize small cells",
    "user_guide/audit_options": "compare two models",
    "user_guide/choosing_a_limit": "min group rate leveling up",
    "user_guide/constrained_erm": "multipliers meaning",
    "how_to/from_other_libraries": """
        Fairlearn MetricFrame equivalent; disparity metric in MetricFrame; compare models by
        predictions; correlation remover
    """,
    "user_guide/model_selection": "hyperparameter tuning with fairness",
    "user_guide/networks_and_streams": """
        PyTorch training loop; use a neural network with a fairness penalty
    """,
    "how_to/boosting": "equalized odds XGBoost",
    "how_to/deploy": "retrain monthly; docker",
    "user_guide/not_supported": """
        Spark; AutoML; embeddings; uplift; insurance; sklearn version supported; must-link
        constraints; socially fair k-means; rND and rKL of a ranking; GPU batches
    """,
    "user_guide/groups": """
        non-binary; disability; declared category without rows; missing sensitive values in
        training data; how do I pass two sensitive columns at once
    """,
    "user_guide/rules": "p% rule; which metric should I choose",
    "user_guide/decisions": """
        exact equalized odds; relaxed equalized odds thresholds; salary prediction
        regression fairness
    """,
    "user_guide/fair_kmeans": """
        size limits of clusters; minimum cluster size k-means; cluster customers with
        balanced gender
    """,
    "user_guide/metrics_of_scores": "calibration by group",
    "quickstart": "fair credit scoring model example; loan approval example",
    "how_to/onnx": "export fair model to ONNX",
    "user_guide/monitoring": "alert when gap grows in production",
    "how_to/repeated_measurements": "same customer appears several times",
    "auto_examples/ranks/plot_admissions": "school admission ranking quotas",
    "how_to/big_data": "dataset larger than memory",
    "how_to/mlflow": "log fairness metrics to experiment tracker",
    "developer/add_a_loss": "write my own fairness loss",
    "user_guide/new_people": "is this difference real or just noise",
}
# Query: pages, of which any answers, as people ask in the trackers of other libraries. They were
# written after the pages and the search, and 28 of 30 were found at once.
TRACKERS = """
    ThresholdOptimizer predict_proba: user_guide/decisions user_guide/faq
    how_to/from_other_libraries; MetricFrame sensitive features nan: user_guide/groups
    how_to/from_other_libraries user_guide/faq how_to/pipelines; estimator does not
    support sample_weight: user_guide/faq generated/skfair.preprocessing.Reweighing;
    ExponentiatedGradient predictions are random: how_to/from_other_libraries
    user_guide/faq; equalized odds ratio nan when false positive rate is zero:
    user_guide/metrics how_to/from_other_libraries
    generated/skfair.metrics.equalized_odds_ratio; pickle fitted ThresholdOptimizer:
    how_to/deploy; multiple sensitive features intersection: user_guide/groups; fit()
    got an unexpected keyword argument sensitive_features: how_to/metadata_routing
    user_guide/faq; bootstrap confidence intervals for group metrics: user_guide/metrics
    user_guide/audit; adversarial debiasing pytorch: user_guide/networks_and_streams
    user_guide/concepts user_guide/glossary how_to/from_other_libraries; dashboard not
    showing in jupyter notebook: user_guide/audit; more than two values of protected
    attribute: user_guide/groups how_to/from_other_libraries user_guide/rules;
    privileged group continuous age: user_guide/groups how_to/from_other_libraries
    user_guide/faq; reweighing weights xgboost: how_to/boosting user_guide/decisions
    generated/skfair.preprocessing.Reweighing how_to/from_other_libraries; load my own
    csv dataset: user_guide/audit how_to/datasets how_to/pipelines
    how_to/choose_with_a_committee; individual fairness consistency metric:
    user_guide/concepts user_guide/not_supported; Theil index: user_guide/not_supported;
    solver did not converge infeasible covariance threshold: user_guide/faq
    how_to/from_other_libraries user_guide/constrained_erm; reference group instead of
    overall: user_guide/audit_options user_guide/metrics user_guide/rules
    how_to/from_other_libraries how_to/legal_tables; bias audit of a score column:
    user_guide/audit; statistical test difference between two models: user_guide/audit_options
    user_guide/new_people how_to/alternatives; top k ranking exposure fairness:
    user_guide/ranking user_guide/partial_fairness; minimum cluster proportion fairlet:
    user_guide/fair_kmeans; regression fairness metrics: user_guide/decisions
    user_guide/metrics user_guide/metrics_of_scores; multiclass classification
    mitigation: user_guide/decisions; grid search cross validation sensitive features:
    user_guide/model_selection how_to/metadata_routing; windows install fails: install;
    false positive rate difference sign which group is worse: user_guide/metrics
    how_to/from_other_libraries user_guide/audit; calibration per group plot:
    user_guide/metrics_of_scores auto_examples/measure/plot_calibration; drift of
    fairness metrics over time: user_guide/monitoring
"""
# Other pages that answer a query as well.
ALSO = {
    "equalised odds": ["user_guide/concepts"],
    "disparate impact": ["user_guide/concepts", "how_to/legal_tables"],
    "four-fifths rule": ["how_to/legal_tables", "user_guide/concepts"],
    "80 percent rule": ["how_to/legal_tables"],
    "reweighing": ["generated/skfair.preprocessing.Reweighing"],
    "predict requires sensitive_features error": ["user_guide/groups"],
    "confidence interval of selection rate": ["auto_examples/measure/plot_intervals"],
    "false omission rate difference": ["generated/skfair.metrics.false_omission_parity_difference"],
    "min group rate leveling up": ["user_guide/rules"],
    "compare models by predictions": ["auto_examples/in_use/plot_from_fairlearn"],
    "missing sensitive values in training data": ["how_to/pipelines"],
    "calibration by group": ["auto_examples/measure/plot_calibration"],
    "p% rule": ["how_to/legal_tables"],
    "fair credit scoring model example": ["auto_examples/measure/plot_quickstart"],
    "same customer appears several times": ["auto_examples/limit/plot_repeat_visits"],
    "school admission ranking quotas": ["user_guide/partial_fairness"],
    "which metric should I choose": ["user_guide/concepts", "how_to/choose_with_a_committee"],
    "dataset larger than memory": ["how_to/dask"],
    "write my own fairness loss": ["developer/add_a_constraint"],
    "is this difference real or just noise": ["user_guide/metrics_of_scores"],
}


def queries(*lists):
    """Return each query with the pages that answer it; of all lists if none is given."""
    found = {}
    for pages in lists or (ANSWERS, TASKS):
        for page, words in pages.items():
            for query in " ".join(words.split()).split("; "):
                found.setdefault(query, ALSO.get(query, []).copy()).append(page)
    if not lists:
        for line in " ".join(TRACKERS.split()).split("; "):
            query, pages = line.split(": ")
            found[query] = pages.split()
    return found
