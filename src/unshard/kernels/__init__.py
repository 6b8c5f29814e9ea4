"""The loops that touch every byte, compiled with Cython from typed Python."""
