"""What somebody asks of data, as public words, and how it is answered.

The command line and the curator speak this one language: a request is checked against the
public schema, and what comes back is everything that can be done before data is touched.
"""

from privatest.questions.catalogue import METHODS, Method, Question
from privatest.questions.prepare import prepare
from privatest.questions.rehearsal import rehearse
from privatest.questions.request import Prepared, Request
from privatest.questions.results import Result, result_from_dict

__all__ = [
    "METHODS",
    "Method",
    "Prepared",
    "Question",
    "Request",
    "Result",
    "prepare",
    "rehearse",
    "result_from_dict",
]
