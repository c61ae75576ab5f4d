"""Tensors that have a shape and a place but no memory: nobody may look what is in them.

TensorFlow takes a tensor from another library by its address (DLPack), without a look at what lies there. Compiling
asks a variable's value for its shape and type only (`BuildXlaCompilerArgumentFromTensorSpec` in `get_compiler_ir.cc`),
on a GPU as on a CPU. So one address serves all: on a CPU of pages that are never touched, on a GPU of no memory of its
own. Source: `dlpack.h` of DLPack 0.8, `tensorflow/c/eager/dlpack.cc`.
"""

from __future__ import annotations

import ctypes
import math
import mmap
import sys

import numpy as np
import tensorflow as tf

from tensorboard_plugin_memest.estimation.device import GPU

# Types of devices, and of elements, in DLPack.
_CPU, _CUDA, _ROCM = 1, 2, 10
_INTEGER, _UNSIGNED, _FLOAT, _BFLOAT, _COMPLEX = 0, 1, 2, 4, 5

# Linux's flag for address space that nothing is set aside for; Python's mmap has no name for it before 3.13.
_NO_RESERVE = 0x4000

# Smaller ones are real: what a compiler wants to know, such as a shape, is among them.
_SMALL = 4096


class _Device(ctypes.Structure):
    _fields_ = (("type", ctypes.c_int32), ("id", ctypes.c_int32))


class _Type(ctypes.Structure):
    _fields_ = (("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16))


class _Tensor(ctypes.Structure):
    """`DLManagedTensor`; its last two fields are who made it and what frees it, which is nobody and nothing."""

    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device", _Device),
        ("rank", ctypes.c_int32),
        ("dtype", _Type),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("offset", ctypes.c_uint64),
        ("manager", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
    )


class UntouchedTensors:
    """Tensors of any shape on one device that share one address.

    They live as long as this does.

    Args:
        kind: of the device, the first of its kind.
        largest: bytes of the largest of them.
    """

    def __init__(self, kind: str, largest: int) -> None:
        self._device = _Device(_type_of_gpu() if kind == GPU else _CPU, 0)
        self._name = f"/device:{kind}:0"
        pages = math.ceil(max(largest, 1) / mmap.PAGESIZE) * mmap.PAGESIZE
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | (_NO_RESERVE if sys.platform == "linux" else 0)
        self._pages = np.frombuffer(mmap.mmap(-1, pages, flags=flags), np.uint8)
        self._made: list[tuple[_Tensor, ctypes.Array[ctypes.c_int64]]] = []

    def of(self, shape: list[int], dtype: str) -> tf.Tensor:
        """One of `shape` and `dtype`."""
        kind = tf.as_dtype(dtype)
        code = _code(kind)
        if code is None or math.prod(shape) * kind.size <= _SMALL:
            # Zeros of float8 are made of others.
            with tf.device(self._name):
                return tf.cast(tf.zeros(shape), kind)
        sizes = (ctypes.c_int64 * len(shape))(*shape)
        made = _Tensor(self._pages.ctypes.data, self._device, len(shape), _Type(code, 8 * kind.size, 1), sizes)
        self._made.append((made, sizes))
        capsule = _new_capsule(ctypes.addressof(made), b"dltensor", None)
        return tf.experimental.dlpack.from_dlpack(capsule)


def _type_of_gpu() -> int:
    return _ROCM if tf.test.is_built_with_rocm() else _CUDA


def _code(kind: tf.DType) -> int | None:
    """How DLPack calls elements of a type; None if it has no word for them."""
    if kind == tf.bfloat16:
        return _BFLOAT
    if kind in (tf.float16, tf.float32, tf.float64):
        return _FLOAT
    if kind.is_complex:
        return _COMPLEX
    if kind in (tf.int8, tf.int16, tf.int32, tf.int64):
        return _INTEGER
    return _UNSIGNED if kind in (tf.uint8, tf.uint16, tf.uint32, tf.uint64) else None


_new_capsule = ctypes.pythonapi.PyCapsule_New
_new_capsule.restype = ctypes.py_object
_new_capsule.argtypes = (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
