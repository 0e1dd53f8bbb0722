"""What people search for who know the field, and the pages that answer: any of them is right.

``make doc-look`` types each query into the search of the built site, and so does a test where
there are a site and Chromium. ``conf.py`` makes an ``index`` entry of each query.
"""

# Page: queries.
ANSWERS = {
    "user_guide/concepts": """
        bias mitigation; mitigation; individual fairness; counterfactual fairness; sources
        of bias; allocation harm; quality of service harm; disparate treatment; GDPR; EU AI
        Act; independence; separation; sufficiency; impossibility; definitions of fairness;
        proxy variable
    """,
    "user_guide/rules": """
        four-fifths rule; 80 percent rule; disparate impact; disparate impact ratio;
        equalised odds; equalized odds; equal opportunity; demographic parity; predictive
        parity; constraint; fairness criterion; Simpson's paradox; bounded group loss
    """,
    "how_to/choose_with_a_committee": "committee; stakeholders; decision memo",
    "how_to/legal_tables": """
        adverse impact; adverse impact ratio; impact ratio; NYC Local Law 144; EEOC; ECOA;
        hiring; Fisher's exact test; less discriminatory alternative
    """,
    "auto_examples/measure/plot_calibration": "calibration within groups; calibration",
    "user_guide/decisions": """
        reweighing; post-processing; pre-processing; threshold; thresholds; multiclass;
        multinomial; group-aware; group-blind; threshold optimizer; quota
    """,
    "user_guide/constrained_erm": """
        in-processing; limit; multiplier; Lagrange multiplier; satisfied; violated;
        exponentiated gradient
    """,
    "user_guide/groups": """
        BISG; intersectionality; attribute missing at prediction; age; protected attribute;
        sensitive attribute; sensitive feature; intersectional groups; predict without
        sensitive attribute; race not recorded
    """,
    "user_guide/metrics": "disparity; balance; control features; confidence interval",
    "user_guide/metrics_of_scores": "statistical parity; noise floor; ROC AUC by group",
    "user_guide/levelling_down": "levelling down; leveling down",
    "user_guide/new_people": """
        p-value; statistical significance; sample size; certified; certificate; population;
        unseen data; guarantee; confidence; p-value of a difference; how many rows do I need
    """,
    "user_guide/monitoring": "drift; monitoring; alarm",
    "user_guide/audit": """
        audit csv; audit; false discovery rate; audit my csv; Excel; small groups; suppress
        small cells; model card
    """,
    "user_guide/glossary": "fairness through unawareness; differential privacy; roadmap",
    "user_guide/ranking": "learning to rank; exposure",
    "user_guide/model_selection": "grid search; custom metric; scorer; add my own metric",
    "references": "citation; bibtex; license",
    "install": "conda; install",
    "how_to/boosting": """
        LightGBM; XGBoost; CatBoost; equalized odds with XGBoost; equalised odds with
        XGBoost
    """,
    "how_to/from_other_libraries": "fairlearn",
    "developer/add_a_constraint": "add a constraint",
    "user_guide/choosing_a_limit": "choose a limit; which limit; fairness accuracy trade-off",
    "user_guide/not_supported": """
        not supported; time series; survival analysis; GPU; recommender systems; clustering
        of mixed data; large language models; survival; multi-label
    """,
    "user_guide/faq": """
        infeasible; slow; data leakage; error message; why infeasible; convergence warning
    """,
    "how_to/board": "explain to the board; report for management",
    "how_to/closed_models": "language model; LLM; closed service; foundation models",
    "how_to/mapie": "MAPIE; conformal prediction; coverage by group",
    "how_to/from_scikit_lego": "scikit-lego; sklego",
    "how_to/case_study": "tutorial; case study; real data; COMPAS",
    "how_to/explain": "SHAP; explanation; feature importance",
    "how_to/pipelines": "text data; polars; missing values",
    "how_to/deploy": "save model; model registry",
    "choose": "which estimator",
    "changelog": "release",
    "user_guide/partial_fairness": "top 20 percent; shortlist",
    "user_guide/networks_and_streams": "sample weights",
    "how_to/from_aif360": "AIF360; reject option",
    "benchmarks/traps": "wrong number; wrong input",
}
# Other pages that answer a query as well.
ALSO = {
    "equalised odds": ["user_guide/concepts"],
    "disparate impact": ["user_guide/concepts", "how_to/legal_tables"],
    "four-fifths rule": ["how_to/legal_tables", "user_guide/concepts"],
    "80 percent rule": ["how_to/legal_tables"],
    "reweighing": ["generated/skfair.preprocessing.Reweighing"],
}


def queries():
    """Return each query with the pages that answer it."""
    found = {}
    for page, words in ANSWERS.items():
        for query in " ".join(words.split()).split("; "):
            found[query] = [page, *ALSO.get(query, [])]
    return found
