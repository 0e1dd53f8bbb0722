"""Problems with constraints within percentile intervals."""
