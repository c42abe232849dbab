"""The command line, its commands, and the programs of `pipeline/` and `make data`."""
