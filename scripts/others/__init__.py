"""Sets of buggy training programs that others have published, and what tools say of them (docs/benchmarks.md)."""
