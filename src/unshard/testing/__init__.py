"""Throwaway servers, workloads and the reference database, for tests, bench and demo."""
