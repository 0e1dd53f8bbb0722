"""The steps of the constrained estimators: settings, task, bind, solve and report."""
