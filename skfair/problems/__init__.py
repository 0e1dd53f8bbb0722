"""Problems that solvers see: values, gradients, samples, difference-of-convex parts."""
