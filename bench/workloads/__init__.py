"""Workloads beside TPC-H's own: data and query streams of the other papers, and streams made to be difficult."""
