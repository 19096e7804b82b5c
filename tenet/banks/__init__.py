"""Parts of a class bank, which `tenet.bank` puts together: stored shots, the file, registration in words."""
