"""What the papers share: claims, tables beside printed numbers, figures, and links to
the cells behind a number.
"""
