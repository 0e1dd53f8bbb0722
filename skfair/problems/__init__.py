"""What a solver may ask: values, gradients, samples, difference-of-convex parts."""
