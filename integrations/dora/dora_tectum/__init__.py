"""__init__.py - dora-tectum: a pipeline of tectum as a node of a dora dataflow; see doc/dora.md."""
