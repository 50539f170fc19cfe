"""Tables, figures and claims of the paper: described in ``specs``, run, kept as rows, shown as pages."""

from sparsevae.reproduction.paper import Reproduction, reproduce

__all__ = ["Reproduction", "reproduce"]
