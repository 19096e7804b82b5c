"""Benchmarks: `tenet bench NAME`, ratios within one run."""
