"""The command line, and the code of the programs in `pipeline/` and of `make data`."""
