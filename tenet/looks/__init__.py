"""How pictures are looked at, which `tenet.predictor` puts together: sources, sizes, tiles, merging."""
