"""`python -m bench.report`: every measurement and proof in one call, as one HTML page and one JSON file.

Each part runs in a process of its own with a time limit. A part that lacks a program is left out, a part that fails is
reported as failed, and the others go on.
"""
