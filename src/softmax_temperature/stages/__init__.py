"""Stages: one module for each verb of the pipeline; `cells` says what is to be done, `run` does one piece of it."""
