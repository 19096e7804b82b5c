"""`tenet ablate`: variants of a detector measured on equal ground, and their tables and figures."""
