"""Logarithm and exponential in plain arithmetic, with the same bits on every machine.

The C library's differ in the last bit from one machine to the next, and a compiler may swap in its own.
These use only + - × ÷ and exact scaling by powers of two, which IEEE 754 fixes to the bit; both are within 2
units in the last place.
"""

from __future__ import annotations

import math

from datahall.compiled import inline

LN2_HIGH = 6.93147180369123816490e-01  # ln 2 cut after 32 bits, so that n × LN2_HIGH is exact for |n| < 2**21
LN2_LOW = 1.90821492927058770002e-10  # the rest of ln 2
SQRT_HALF = 0.7071067811865476


@inline
def log(value: float) -> float:
    """Natural logarithm of a positive finite number.

    value = m 2^n with m in [√½, √2); ln m = 2 artanh s with s = (m - 1) / (m + 1), |s| < 0.172, by its
    series.

    >>> log(1.0), log(math.e)
    (0.0, 1.0)
    """
    if not 0.0 < value < math.inf:
        raise ValueError("log needs a positive finite number")
    fraction, exponent = math.frexp(value)
    if fraction < SQRT_HALF:
        fraction *= 2.0
        exponent -= 1
    less_one = fraction - 1.0
    s = less_one / (2.0 + less_one)
    z = s * s
    w = z * z  # even and odd terms apart: two short chains instead of a long one
    odd = z * (1 / 3 + w * (1 / 7 + w * (1 / 11 + w * (1 / 15 + w * (1 / 19)))))
    even = w * (1 / 5 + w * (1 / 9 + w * (1 / 13 + w * (1 / 17 + w * (1 / 21)))))
    # 2 artanh s = 2s + 2s·rest; 2s = less_one - s·less_one keeps the large part exact.
    tail = s * (2.0 * (odd + even) - less_one)
    return exponent * LN2_HIGH + (less_one + (tail + exponent * LN2_LOW))


@inline
def exp(value: float) -> float:
    """e to the power of a number between -700 and 700.

    value = n ln 2 + r with |r| <= ½ ln 2; e^value = 2^n e^r, e^r by its series.

    >>> exp(0.0), round(exp(1.0), 12)
    (1.0, 2.718281828459)
    """
    if not -700.0 <= value <= 700.0:
        raise ValueError("exp needs a number between -700 and 700")
    exponent = math.floor(value / (LN2_HIGH + LN2_LOW) + 0.5)
    r = (value - exponent * LN2_HIGH) - exponent * LN2_LOW
    total = 1.0
    for n in range(14, 1, -1):
        total = 1.0 + r * total / n
    return math.ldexp(1.0 + r * total, exponent)
