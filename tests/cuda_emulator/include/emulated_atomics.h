/* emulated_atomics.h - atomics on integers. There are none on floats: sums must have one order. */
#pragma once

namespace cuda_emulator
{
template <class T> struct same_type {
    typedef T type; /* so that only the pointer decides what T is */
};
template <class T> struct atomic_integer {
};
template <> struct atomic_integer<int> {
    typedef int type;
};
template <> struct atomic_integer<unsigned> {
    typedef unsigned type;
};
template <> struct atomic_integer<unsigned long long> {
    typedef unsigned long long type;
};
} // namespace cuda_emulator

#define EMULATOR_ATOMIC(name, expression)                               \
    template <class T>                                                  \
    static inline typename cuda_emulator::atomic_integer<T>::type name( \
        T *at, typename cuda_emulator::same_type<T>::type v)            \
    {                                                                   \
        T old = *at;                                                    \
        *at = (expression);                                             \
        return old;                                                     \
    }
EMULATOR_ATOMIC(atomicAdd, (T)(old + v))
EMULATOR_ATOMIC(atomicSub, (T)(old - v))
EMULATOR_ATOMIC(atomicExch, v)
EMULATOR_ATOMIC(atomicMin, v < old ? v : old)
EMULATOR_ATOMIC(atomicMax, v > old ? v : old)
EMULATOR_ATOMIC(atomicAnd, (T)(old &v))
EMULATOR_ATOMIC(atomicOr, (T)(old | v))
EMULATOR_ATOMIC(atomicXor, (T)(old ^ v))
EMULATOR_ATOMIC(atomicInc, old >= v ? 0 : old + 1)
EMULATOR_ATOMIC(atomicDec, old == 0 || old > v ? v : old - 1)
#undef EMULATOR_ATOMIC

template <class T>
static inline typename cuda_emulator::atomic_integer<T>::type
atomicCAS(T *at, typename cuda_emulator::same_type<T>::type compare,
          typename cuda_emulator::same_type<T>::type v)
{
    T old = *at;
    if (old == compare)
        *at = v;
    return old;
}
