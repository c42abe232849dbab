"""One folder a paper: its records, tables, figures and claims. Papers import methods, never one another."""
