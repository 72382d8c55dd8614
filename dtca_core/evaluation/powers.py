"""Products of powers of whole numbers as prime factors: 2^{4^8} without its digits."""

from math import log2
from typing import Any

import sympy
from sympy.ntheory import factorint

_LARGEST_FACTORED = 10**12
_LARGEST_EXPONENT_BITS = 10_000

PrimeExponents = dict[int, sympy.Rational]
"""Exponent by prime; what is 0 is left out."""


def prime_exponents(expression: sympy.Expr) -> PrimeExponents | None:
    """Return the prime factors of a positive product of powers, None where it is none.

    Two such products are equal exactly if their factors are: primes with rational exponents are
    independent. Nothing larger than a trillion is factored, and no power is multiplied out.
    """
    if isinstance(expression, sympy.Rational):
        return _of_rational(expression)
    if isinstance(expression, sympy.Mul):
        factors = [prime_exponents(argument) for argument in expression.args]
        known = [factor for factor in factors if factor is not None]
        return _product(known) if len(known) == len(factors) else None
    if isinstance(expression, sympy.Pow):
        base, exponent = prime_exponents(expression.base), _value(expression.exp)
        if base is None or exponent is None:
            return None
        return _product([{prime: power * exponent for prime, power in base.items()}])
    return None


def divisor_or_multiple(call: Any) -> sympy.Expr | None:
    """Return the value of a call of gcd or lcm on whole numbers, None where it is another call.

    In prime factors the one takes the smallest exponent and the other the largest, so that
    gcd(3^{100000000}, 9) needs no power. Arguments of other forms, such as 10!, are evaluated.
    """
    known_calls = {"\\text{gcd}": (min, sympy.igcd), "\\text{lcm}": (max, sympy.ilcm)}
    if str(call.func) not in known_calls:
        return None
    choose, of_integers = known_calls[str(call.func)]
    factors = [prime_exponents(argument) for argument in call.args]
    whole = [factor for factor in factors if factor is not None and _is_whole(factor)]
    if len(whole) < len(factors):
        values = [argument.doit() for argument in call.args]
        are_integers = all(value.is_Integer for value in values)
        return sympy.Integer(of_integers(*values)) if are_integers else None
    primes = {prime for factor in whole for prime in factor}
    powers = [
        sympy.Pow(prime, choose(factor.get(prime, 0) for factor in whole), evaluate=False)
        for prime in sorted(primes)
    ]
    return sympy.Mul(*powers, evaluate=False)


def _is_whole(factors: PrimeExponents) -> bool:
    return all(power.is_Integer and power > 0 for power in factors.values())


def _of_rational(number: sympy.Rational) -> PrimeExponents | None:
    if not 0 < number.p <= _LARGEST_FACTORED or number.q > _LARGEST_FACTORED:
        return None
    above, below = factorint(number.p), factorint(number.q)
    return _product(
        [
            {int(prime): sympy.Integer(power) for prime, power in above.items()},
            {int(prime): -sympy.Integer(power) for prime, power in below.items()},
        ]
    )


def _product(factors: list[PrimeExponents]) -> PrimeExponents:
    total: PrimeExponents = {}
    for factor in factors:
        for prime, power in factor.items():
            total[prime] = total.get(prime, sympy.Integer(0)) + power
    return {prime: power for prime, power in total.items() if power != 0}


def _value(exponent: sympy.Expr) -> sympy.Rational | None:
    """Return the value of an exponent, None where it is no rational number or too large."""
    if isinstance(exponent, sympy.Rational):
        return exponent
    if isinstance(exponent, sympy.Add):
        terms = [_value(argument) for argument in exponent.args]
        known = [term for term in terms if term is not None]
        return sum(known, sympy.Integer(0)) if len(known) == len(terms) else None
    factors = prime_exponents(exponent)
    if factors is None or not all(power.is_Integer for power in factors.values()):
        return None
    if sum(abs(power) * log2(prime) for prime, power in factors.items()) > _LARGEST_EXPONENT_BITS:
        return None
    value = sympy.Integer(1)
    for prime, power in factors.items():
        value *= sympy.Integer(prime) ** power
    return value
