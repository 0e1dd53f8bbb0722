"""The features of every estimator: one table, for tests and for the documentation.

``tests/test_contracts.py`` tries each entry. A column is an estimator, or with ``+`` one
that is told the group at prediction (``group_aware=True``). An entry is "+" (supported:
the test checks what it brings about), a sign of ``REFUSALS`` (an error with these words), or "-"
(nothing is promised).
"""

SUPPORTED = "+"
REFUSALS = {
    ".": "unexpected keyword argument|has no attribute|has an argument",
    "p": "needs the group of each (row|person)",
    "o": "groups that do not overlap",
    "b": "'min_balance' parameter",
    "c": "is not for (intervals|predictions|regression). Choose from",
    "r": "does not compare pairs of groups by differences",
    "g": "is group-aware: pass the groups",
    "n": "1 level that did not occur at fit: 'x'. Known levels: 'f', 'm'",
    "e": "1 cell: group 'f' with y=1",
    "s": "could not convert string to float",
    "m": "Input X contains NaN",
    "w": "takes no sample_weight",
    "2": "Only binary classification is supported",
    "y": "y must be numbers",
    "l": "'model' parameter",
    "k": "does not take Sensitive.missing='loss'",
    "d": "does not read Dask collections here",
}
COLUMNS = (
    *("FairKMeans", "ParetoFairKMeans", "FairAssignment", "FairSpectralClustering"),
    *("ConstrainedERMClassifier", "FairDecisionClassifier", "FairDecisionClassifier+"),
    *("PartialParityClassifier", "PartialParityClassifier+", "PartialParityCalibrator"),
    *("Reweighing", "ConstrainedERMRegressor", "FairDecisionRegressor", "FairDecisionRegressor+"),
    "FairRanker",
)
ROWS = """
                              clusters  linear decisions  intervals  weights numbers  ranks
attributes crossed            + + + +   +      + +        + + +      +       + + +    +
attributes apart              + + + +   +      + +        + o o      +       + + +    +
a limit for each attribute    b . b b   +      + +        + o o      .       + + +    +
attributes in columns         + + + +   +      + +        + + +      +       + + +    +
probabilities of groups       p p p p   +      + p        p p p      p       + p p    p
rows without a group          k k k k   +      + +        + p +      k       + + +    k
control features              . . . .   +      + +        . . .      .       + c c    .
no groups                     + + + +   +      + +        + + +      +       + + +    +
predictions without the group + . + +   +      + g        + g g      +       + + g    +
groups that are new           n . n n   .      + n        + n n      .       . + n    .
min rate                      . . . .   +      + +        . . .      .       . . .    .
selection rate                . . . .   +      + +        . . .      .       . . .    .
ratios                        . . . .   +      + +        r r r      .       c c c    .
predictive parity             . . . .   +      + +        c c c      .       c c c    .
confidence                    . . . .   +      + +        + + +      .       + . .    .
a group without positives     . . . .   e      e e        e e e      .       c c c    .
sample weight                 + + + .   +      + +        + + +      +       + + +    .
rows of weight 0              + + + .   +      - -        + + +      +       + - -    .
weights as copies             - - + .   +      - -        + + +      -       + - -    .
groups of rows                . . . .   .      + +        . . +      .       . + +    .
partial fit                   + . . .   +      . .        . . .      .       . . .    .
the order of rows             - - - -   +      + +        + + +      +       + + +    -
sparse X                      + + + +   +      + +        + + +      +       + + +    +
float32                       + + + +   +      + +        + + +      +       + + +    +
columns of text               s s s s   s      + +        s s +      w       s + +    s
missing values                m m m m   m      + +        m m +      +       m + +    m
several classes               - - - -   2      + +        2 2 2      +       - - -    -
labels of text                - - - -   +      + +        + + +      +       y y y    y
networks                      . . . .   +      . .        l l .      .       + . .    +
dask                          + + d d   +      d +        d d +      d       d d d    d
callbacks                     + + . +   +      . .        + + .      .       + . .    +
"""
TABLE: dict[str, dict[str, str]] = {}
for line in ROWS.splitlines()[2:]:
    TABLE[line[:29].strip()] = dict(zip(COLUMNS, line[29:].split(), strict=True))
