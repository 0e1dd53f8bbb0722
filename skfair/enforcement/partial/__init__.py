"""Limits within an interval of scores: the disparity that is limited, and the repair of scores."""
