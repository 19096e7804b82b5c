"""Measurements that can be repeated: a JSON file with figures, configuration, commit, time and command."""
