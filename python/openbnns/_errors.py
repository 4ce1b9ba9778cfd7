"""What is raised where a call is refused."""

from __future__ import annotations

import re

_REASON = re.compile(
    r"^(?:(?P<function>\w+(?:::\w+)?): )?(?:(?P<c_function>BNNS\w+): )?(?:(?P<operator>[a-z_0-9]+): )?(?P<reason>.*)$", re.S
)
_FIELD = re.compile(r"^(?P<field>[\w.\[\]]+) (?:is|are|has|have) (?P<given>.*?)(?:, expected (?P<expected>.*))?$", re.S)


class Error(ValueError):
    """A refused call. Nothing was written.

    function   the layer or function, such as "ConvolutionLayer"
    operator   the library's operator, such as "convolution"; None where the package found the mistake
    field      what is wrong with the call, such as "input"
    given      what it is, such as "of dtype float64"
    expected   what it should be
    Each is None where the reason does not say it.
    """

    def __init__(self, message: str) -> None:
        super().__init__(message)
        whole = _REASON.match(message)
        self.function: str | None = whole["function"] if whole else None
        self.operator: str | None = whole["operator"] if whole else None
        self.reason: str = whole["reason"] if whole else message
        part = _FIELD.match(self.reason)
        self.field: str | None = part["field"] if part else None
        self.given: str | None = part["given"] if part else None
        self.expected: str | None = part["expected"] if part else None
