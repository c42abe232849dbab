"""Records, tables, figures and claims of each paper, and the report of all papers."""
