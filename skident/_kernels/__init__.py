"""Compiled kernels: arrays, scalars and uint64 random states in, arrays out."""
