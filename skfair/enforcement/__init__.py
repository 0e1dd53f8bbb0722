"""Makes sure that solutions satisfy their limits, as counted on the rows.

Each kind of model has a folder: ``erm`` trained scores, ``decisions`` post-processed decisions,
``certified`` limits for unseen data. The files here are shared. ``strict_evaluation`` counts rates
and scans thresholds, ``cuts`` finds thresholds of known groups, and ``rounds`` has the steps that
repair smooth solutions. ``regression_steps`` and ``regression_maps`` move predicted numbers, and
``group_maps`` holds the maps that fits return.
"""
