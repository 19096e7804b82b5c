"""One module for each command of `tenet`."""
