"""Displays, for the tests that go over all families (:mod:`tests.families`)."""

from skfair.inspection import GroupRatesDisplay

READERS_OF_LABELS = {
    "display": lambda y, p, **options: GroupRatesDisplay.from_predictions(y, p, **options).values
}
