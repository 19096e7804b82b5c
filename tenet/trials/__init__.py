"""A model tried as users use it, and its scores calibrated."""
