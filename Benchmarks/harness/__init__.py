"""The shared parts of the benchmarks: the endpoint, seeding, measuring of processes, tables and charts."""
