"""k-means under limits: fits, fronts, streams, and the prices that solve them."""
