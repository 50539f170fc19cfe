"""Whether intervals of effects and correlations of factors are right, on known answers."""
