"""The experiments: each module lists its own in `EXPERIMENTS`."""
