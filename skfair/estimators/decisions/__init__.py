"""FairDecisionClassifier and its kin: the steps of a fit, and decisions of new rows."""
