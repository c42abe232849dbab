"""The papers: records, tables, figures and claims of each, what they share, and the
report.
"""
