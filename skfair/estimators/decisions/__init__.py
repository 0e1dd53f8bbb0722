"""The steps of a fit of FairDecisionClassifier, and decisions of new rows."""
