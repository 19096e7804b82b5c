"""Training: from a recipe and a data set to a checkpoint."""
