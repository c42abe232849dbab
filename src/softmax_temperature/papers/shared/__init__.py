"""Code of all papers: runs, contrasts, claims, tables, figures, links to cells."""
