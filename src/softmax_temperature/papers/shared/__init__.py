"""What the papers share: claims, tables beside printed numbers, figures and their provenance."""
