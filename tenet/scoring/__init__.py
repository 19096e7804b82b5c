"""From detections to numbers. Speaks numpy; loads no torch."""
