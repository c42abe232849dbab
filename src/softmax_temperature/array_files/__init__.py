"""The arrays in a user's file, whatever its type: known by their headers first, and read when memory can hold them.

`read_arrays` is what commands call; one module knows each type. Nothing is unpickled, and a file that is not what its
name says is refused by its first bytes or its size, however large it is.
"""

from softmax_temperature.array_files.reading import read_arrays

__all__ = ["read_arrays"]
