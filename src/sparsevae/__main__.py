"""``python -m sparsevae`` is the same as ``sparsevae``."""

from sparsevae.cli import main

if __name__ == "__main__":
    main()
