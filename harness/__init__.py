"""The test harness for Hugging Face's documented "A full training" (GLUE MRPC, bert-base-uncased, 1377 updates).

Importing this package imports neither torch nor transformers; ``harness.documented_run.run`` does the work.
"""

__version__ = "0.4.0"
