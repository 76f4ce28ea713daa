"""Eight 64-bit words as one value inside kernels.

The value is a vector of LLVM: it lives in one register of 512 bits, in two of 256 or
in four of 128, whatever the machine has, and stays there, where a loop over arrays of
words goes through memory or is left scalar. It knows ``& | ^ ~ + << >>``, word by
word; shifts are by an int.
"""

import operator

import numpy as np
from llvmlite import ir
from numba.core.cgutils import get_or_insert_function
from numba.extending import intrinsic, models, overload, register_model, types

from skident._kernels.jit import kernel

WIDTH = 8

_VECTOR = ir.VectorType(ir.IntType(64), WIDTH)
_ALIGNMENT = 8  # bytes: numpy promises no more
_ALL = np.uint64(0xFFFFFFFFFFFFFFFF)


class Words(types.Type):
    """Numba's type of eight words."""

    def __init__(self):
        super().__init__(name="Words")


_words = Words()


@register_model(Words)
class _WordsModel(models.PrimitiveModel):
    def __init__(self, manager, numba_type):
        super().__init__(manager, numba_type, _VECTOR)


def _address(context, builder, array_type, array, offset):
    data = context.make_array(array_type)(context, builder, array).data
    return builder.gep(data, [offset])


def _spread(builder, word):
    index = ir.IntType(32)
    empty = ir.Constant(_VECTOR, ir.Undefined)
    one = builder.insert_element(empty, word, ir.Constant(index, 0))
    everywhere = ir.Constant(ir.VectorType(index, WIDTH), [0] * WIDTH)
    return builder.shuffle_vector(one, empty, everywhere)


@intrinsic
def load(typingctx, array, offset):
    """Return the eight words at ``offset`` of a contiguous uint64 array, flattened."""

    def generate(context, builder, signature, args):
        address = _address(context, builder, signature.args[0], *args)
        value = builder.load(builder.bitcast(address, _VECTOR.as_pointer()))
        value.align = _ALIGNMENT
        return value

    return _words(array, types.intp), generate


@intrinsic
def store(typingctx, array, offset, value):
    """Write eight words at ``offset`` of a contiguous uint64 array, flattened."""

    def generate(context, builder, signature, args):
        address = _address(context, builder, signature.args[0], *args[:2])
        pointer = builder.bitcast(address, _VECTOR.as_pointer())
        builder.store(args[2], pointer).align = _ALIGNMENT
        return context.get_dummy_value()

    return types.void(array, types.intp, _words), generate


@intrinsic
def load_splat(typingctx, array, offset):
    """Return eight times the word at ``offset`` of a contiguous uint64 array."""

    def generate(context, builder, signature, args):
        address = _address(context, builder, signature.args[0], *args)
        return _spread(builder, builder.load(address))

    return _words(array, types.intp), generate


@intrinsic
def splat(typingctx, word):
    """Return eight times the same uint64."""

    def generate(context, builder, signature, args):
        return _spread(builder, args[0])

    return _words(types.uint64), generate


@intrinsic
def popcount(typingctx, value):
    """Return the number of set bits of each word."""

    def generate(context, builder, signature, args):
        kind = ir.FunctionType(_VECTOR, [_VECTOR])
        name = f"llvm.ctpop.v{WIDTH}i64"
        return builder.call(get_or_insert_function(builder.module, kind, name), args)

    return _words(_words), generate


@intrinsic
def inline(typingctx):
    """Have LLVM copy the kernel that says this into its callers.

    Else words might pass between kernels through memory.
    """

    def generate(context, builder, signature, args):
        builder.function.attributes.add("alwaysinline")
        return context.get_dummy_value()

    return types.void(), generate


def _binary(instruction):
    @intrinsic
    def apply(typingctx, left, right):
        def generate(context, builder, signature, args):
            return getattr(builder, instruction)(*args)

        return _words(_words, _words), generate

    return apply


_and, _or, _xor, _add = map(_binary, ("and_", "or_", "xor", "add"))
_shl, _lshr = map(_binary, ("shl", "lshr"))


@overload(operator.and_)
def _overload_and(left, right):
    if left is _words and right is _words:
        return lambda left, right: _and(left, right)


@overload(operator.or_)
def _overload_or(left, right):
    if left is _words and right is _words:
        return lambda left, right: _or(left, right)


@overload(operator.xor)
def _overload_xor(left, right):
    if left is _words and right is _words:
        return lambda left, right: _xor(left, right)


@overload(operator.add)
def _overload_add(left, right):
    if left is _words and right is _words:
        return lambda left, right: _add(left, right)


@overload(operator.invert)
def _overload_invert(value):
    if value is _words:
        return lambda value: _xor(value, splat(_ALL))


@overload(operator.lshift)
def _overload_lshift(value, bits):
    if value is _words and isinstance(bits, types.Integer):
        return lambda value, bits: _shl(value, splat(np.uint64(bits)))


@overload(operator.rshift)
def _overload_rshift(value, bits):
    if value is _words and isinstance(bits, types.Integer):
        return lambda value, bits: _lshr(value, splat(np.uint64(bits)))


@kernel
def zeros():
    """Return eight zero words."""
    inline()
    return splat(np.uint64(0))


@kernel
def load_streams(states):
    """Return four values: the states of eight streams, (4, 8) uint64."""
    inline()
    return (
        load(states, 0), load(states, WIDTH),
        load(states, 2 * WIDTH), load(states, 3 * WIDTH),
    )  # fmt: skip


@kernel
def store_streams(states, s0, s1, s2, s3):
    """Write the states of eight streams, (4, 8) uint64."""
    inline()
    store(states, 0, s0)
    store(states, WIDTH, s1)
    store(states, 2 * WIDTH, s2)
    store(states, 3 * WIDTH, s3)


@kernel
def next_words(s0, s1, s2, s3):
    """Return a random word of each of eight streams, and the new states.

    The same numbers as by :func:`skident._kernels.streams.next_uint64`.
    """
    inline()
    total = s0 + s3
    result = ((total << 23) | (total >> 41)) + s0
    shifted = s1 << 17
    s2 = s2 ^ s0
    s3 = s3 ^ s1
    s1 = s1 ^ s2
    s0 = s0 ^ s3
    s2 = s2 ^ shifted
    s3 = (s3 << 45) | (s3 >> 19)
    return result, s0, s1, s2, s3
