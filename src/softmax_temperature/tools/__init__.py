"""The command line with what its commands do, and what the programs in `pipeline/` and
`make data` call.
"""
