"""Throwaway servers, workloads and comparisons, for tests, bench and demo; for tests alone: `tests/support`."""
