"""What somebody asks of data, as public words, and how it is answered.

The command line and the curator speak this one language: a request is checked against the
public schema, and what comes back is everything that can be done before data is touched.
"""

from privatest.requests.catalogue import METHODS, Method, Question
from privatest.requests.prepare import Prepared, prepare
from privatest.requests.rehearsal import rehearse
from privatest.requests.request import Request

__all__ = ["METHODS", "Method", "Prepared", "Question", "Request", "prepare", "rehearse"]
