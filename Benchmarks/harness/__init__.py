"""What the benchmarks share: the endpoint, the seeding, the measuring of processes, tables and pictures."""
