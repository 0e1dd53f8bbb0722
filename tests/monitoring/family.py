"""Monitors, for the tests that go over all families (:mod:`tests.families`)."""

from skfair.monitoring import DisparityMonitor


def rates_watched(y, p, *, sensitive_features, **options):
    monitor = DisparityMonitor("equal_opportunity", **options)
    monitor.update(y, p, sensitive_features=sensitive_features)
    return monitor.rates_


READERS_OF_LABELS = {"monitor": rates_watched}
