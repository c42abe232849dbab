"""Code that the papers share: runs, contrasts, claims, tables, figures, notebooks."""
