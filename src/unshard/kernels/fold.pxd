# cython: language_level=3
# Carry-less multiplication, where the processor has it: it folds a long message into 16 bytes with the same CRC-32.
#
# The message is a polynomial over GF(2). Sixteen bytes that stand d bits before others may be added to those once
# multiplied by x^d modulo the CRC's polynomial; four such lanes are in work at once. V. Gopal et al., "Fast CRC
# Computation for Generic Polynomials Using PCLMULQDQ Instruction", Intel 2009.
cdef extern from *:
    """
    #if defined(__x86_64__) && (defined(__GNUC__) || defined(__clang__))
    #include <immintrin.h>
    #define FOLDING __attribute__((target("pclmul,sse2")))

    static int can_fold(void) {
        __builtin_cpu_init();
        return __builtin_cpu_supports("pclmul") != 0;
    }

    FOLDING static inline __m128i moved(__m128i lane, __m128i keys, __m128i onto) {
        __m128i early = _mm_clmulepi64_si128(lane, keys, 0x00);
        __m128i late = _mm_clmulepi64_si128(lane, keys, 0x11);
        return _mm_xor_si128(_mm_xor_si128(early, late), onto);
    }

    FOLDING static void fold(const unsigned char *at, long long blocks, unsigned int crc,
                             const unsigned long long *keys, unsigned char *folded) {
        const __m128i by_four = _mm_loadu_si128((const __m128i *)keys);
        const __m128i by_one = _mm_loadu_si128((const __m128i *)(keys + 2));
        const __m128i *next = (const __m128i *)at;
        const __m128i *end = next + blocks;
        __m128i a = _mm_xor_si128(_mm_loadu_si128(next++), _mm_cvtsi32_si128((int)crc));
        if (blocks >= 8) {
            __m128i b = _mm_loadu_si128(next), c = _mm_loadu_si128(next + 1), d = _mm_loadu_si128(next + 2);
            for (next += 3; end - next >= 4; next += 4) {
                a = moved(a, by_four, _mm_loadu_si128(next));
                b = moved(b, by_four, _mm_loadu_si128(next + 1));
                c = moved(c, by_four, _mm_loadu_si128(next + 2));
                d = moved(d, by_four, _mm_loadu_si128(next + 3));
            }
            a = moved(moved(moved(a, by_one, b), by_one, c), by_one, d);
        }
        while (next < end)
            a = moved(a, by_one, _mm_loadu_si128(next++));
        _mm_storeu_si128((__m128i *)folded, a);
    }
    #else
    static int can_fold(void) { return 0; }
    static void fold(const unsigned char *at, long long blocks, unsigned int crc, const unsigned long long *keys,
                     unsigned char *folded) { (void)at; (void)blocks; (void)crc; (void)keys; (void)folded; }
    #endif
    """
    bint can_fold() noexcept nogil

    # `blocks` (one at least) of 16 bytes at `at`, begun with the register `crc`, into the 16 bytes of `folded`. `keys`
    # are for lanes 64 and 16 bytes apart, two each: for the early and the late half of a lane.
    void fold(const unsigned char* at, long long blocks, unsigned int crc, const unsigned long long* keys,
              unsigned char* folded) noexcept nogil
