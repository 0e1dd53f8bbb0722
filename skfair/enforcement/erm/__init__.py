"""Limits on models that are trained: rounds of smooth problems, judged by their true disparities.

``strict`` is called by estimators. It runs the rounds of ``path``, or the steps of ``rate_steps``
if there are many groups, and ends with ``refine``. ``true_limits`` says what a solution reaches,
with the best threshold of its scores if only decisions are limited (``thresholds``).
"""
