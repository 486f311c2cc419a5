"""``fit``, ``predict`` and ``score`` on rows that are not in memory: files, batches, Dask.

The same five steps as in memory, in passes: one looks at all rows (finite values, classes,
weights), labels are coded where the rows are, and what is special to an estimator is in a module of
its own here. Few rows are brought here and fitted as any others.
"""
