"""What the rules behind the presets of an audit say, where and since when, and their columns."""

from __future__ import annotations

from typing import NamedTuple


class Rule(NamedTuple):
    """A rule in own words, its source, and what a table made by it is not."""

    title: str
    says: str
    source: str
    is_not: str
    columns: dict[str, str]  # the columns of the table that are shown, and their heads
    least_share: float  # categories with a smaller share of the people are set apart

    @property
    def text(self) -> str:
        """The rule in one paragraph."""
        return f"{self.says} Source: {self.source} {self.is_not}"


_TESTS = {
    "z": "Standard deviations (z)",
    "fisher_p": "Fisher's exact p",
    "fisher_mid_p": "mid-p",
}
_STRATA = {
    "strata_odds_ratio": "Odds ratio within strata",
    "strata_p_value": "Cochran-Mantel-Haenszel p",
}
_RATES = {"selected": "Selected", "rate": "Rate", "impact_ratio": "Impact ratio"}
_REFERENCE = {"ratio_to_reference": "Ratio to the reference"}

RULES: dict[str, Rule] = {
    "ll144": Rule(
        "Impact ratios (New York City Local Law 144)",
        "The impact ratio of a category is its selection rate, divided by that of the most "
        "selected category. Of a tool that scores, the rate is the share of the category with a "
        "score above the median of all scores. Categories of less than 2% of the people may be "
        "left out of the ratios, with their number and rate shown; people of unknown category are "
        "left out, and their number is stated. The law sets no threshold.",
        "Rules of the City of New York, title 6, sections 5-300 to 5-304, final rule of April 6, "
        "2023, enforced since July 5, 2023.",
        "This table is no legal advice, no audit by an independent auditor, and no statement that "
        "the law is complied with.",
        {**_RATES, **_REFERENCE},
        0.02,
    ),
    "ugesp": Rule(
        "Adverse impact (Uniform Guidelines on Employee Selection Procedures)",
        "The impact ratio of a group is its selection rate, divided by that of the most selected "
        "group. A ratio of less than four fifths (80%) is generally regarded as evidence of "
        "adverse impact. It is a rule of thumb: smaller "
        "differences may count where they are significant, larger ones may not where they rest on "
        "few people. Groups of less than 2% of the applicants are not compared. Courts look at "
        "differences of more than two standard deviations (z).",
        "29 CFR 1607.4 D (1978), Questions and Answers (1979); Hazelwood School District v. United "
        "States (1977), Castaneda v. Partida (1977).",
        "This table is no legal advice, no validation of a selection procedure, and no statement "
        "that the guidelines are complied with.",
        {
            **_RATES,
            "is_below_four_fifths": "Four fifths",
            **_REFERENCE,
            **_TESTS,
            **_STRATA,
            "shortfall": "Missing for equal rates",
            "shortfall_four_fifths": "Missing for four fifths",
            "shortfall_two_deviations": "Missing for two deviations",
        },
        0.02,
    ),
    "ecoa": Rule(
        "Fair lending (Equal Credit Opportunity Act)",
        "The adverse impact ratio is the approval rate of a group, divided by that of the control "
        "group. The standardized mean difference is the mean score or price of a group minus that "
        "of the control group, in standard deviations of all people. The act names no threshold; "
        "four fifths and two standard deviations are customary.",
        "15 U.S.C. 1691 (1974), Regulation B, 12 CFR 1002 (2011).",
        "This table is no legal advice, no fair lending examination, and no statement that the act "
        "is complied with.",
        {
            **_RATES,
            "is_below_four_fifths": "Four fifths",
            "odds_ratio": "Odds ratio",
            "mean": "Mean",
            "standardized_difference": "Standardized mean difference",
            **_TESTS,
            **_STRATA,
            "shortfall": "Missing for equal rates",
            "shortfall_four_fifths": "Missing for four fifths",
        },
        0.0,
    ),
}
