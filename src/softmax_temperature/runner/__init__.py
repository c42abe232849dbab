"""Running cells: fingerprints, artifacts, checkpoints, engines, and users' errors."""
