// AES by AVX-512 and VAES, four blocks in a register: what counter mode and GCM share. For C files of this target only.
#pragma once
#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>

#define FAST __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,vaes,vpclmulqdq,aes,pclmul,sse4.1")))

enum {
    group_bytes = 256,
    most_rounds = 14,
};

/// First what is read: with a key of 16 bytes, the first 192.
typedef struct {
    int rounds;
    __m128i round_keys[most_rounds + 1];
} vector_aes;

/// Whether the processor has all that `FAST` names.
int vector_aes_is_usable(void);

// MARK: Keys

FAST static inline __m128i spread(__m128i key) {
    key = _mm_xor_si128(key, _mm_slli_si128(key, 4));
    key = _mm_xor_si128(key, _mm_slli_si128(key, 4));
    return _mm_xor_si128(key, _mm_slli_si128(key, 4));
}

#define EXPAND_128(i, constant)                                                                              \
    keys[i] = _mm_xor_si128(                                                                                 \
        spread(keys[i - 1]), _mm_shuffle_epi32(_mm_aeskeygenassist_si128(keys[i - 1], constant), 0xFF))
#define EXPAND_256_EVEN(i, constant)                                                                         \
    keys[i] = _mm_xor_si128(                                                                                 \
        spread(keys[i - 2]), _mm_shuffle_epi32(_mm_aeskeygenassist_si128(keys[i - 1], constant), 0xFF))
#define EXPAND_256_ODD(i)                                                                                    \
    keys[i] = _mm_xor_si128(                                                                                 \
        spread(keys[i - 2]), _mm_shuffle_epi32(_mm_aeskeygenassist_si128(keys[i - 1], 0), 0xAA))

FAST static inline void expand_128(const uint8_t *key, __m128i *keys) {
    keys[0] = _mm_loadu_si128((const __m128i *)key);
    EXPAND_128(1, 0x01);
    EXPAND_128(2, 0x02);
    EXPAND_128(3, 0x04);
    EXPAND_128(4, 0x08);
    EXPAND_128(5, 0x10);
    EXPAND_128(6, 0x20);
    EXPAND_128(7, 0x40);
    EXPAND_128(8, 0x80);
    EXPAND_128(9, 0x1B);
    EXPAND_128(10, 0x36);
}

FAST static inline void expand_256(const uint8_t *key, __m128i *keys) {
    keys[0] = _mm_loadu_si128((const __m128i *)key);
    keys[1] = _mm_loadu_si128((const __m128i *)(key + 16));
    EXPAND_256_EVEN(2, 0x01);
    EXPAND_256_ODD(3);
    EXPAND_256_EVEN(4, 0x02);
    EXPAND_256_ODD(5);
    EXPAND_256_EVEN(6, 0x04);
    EXPAND_256_ODD(7);
    EXPAND_256_EVEN(8, 0x08);
    EXPAND_256_ODD(9);
    EXPAND_256_EVEN(10, 0x10);
    EXPAND_256_ODD(11);
    EXPAND_256_EVEN(12, 0x20);
    EXPAND_256_ODD(13);
    EXPAND_256_EVEN(14, 0x40);
}

/// - Parameter length: 16 or 32.
FAST static inline void vector_aes_set_key(vector_aes *aes, const uint8_t *key, size_t length) {
    aes->rounds = length == 16 ? 10 : most_rounds;
    if (length == 16) {
        expand_128(key, aes->round_keys);
    } else {
        expand_256(key, aes->round_keys);
    }
}

// MARK: Blocks

FAST static inline __m128i encrypted(const vector_aes *aes, __m128i block) {
    block = _mm_xor_si128(block, aes->round_keys[0]);
    for (int round = 1; round < aes->rounds; round++) {
        block = _mm_aesenc_si128(block, aes->round_keys[round]);
    }
    return _mm_aesenclast_si128(block, aes->round_keys[aes->rounds]);
}

/// The first `count` bytes of a group, as four masks of bytes.
FAST static inline void lanes_below(size_t count, __mmask64 masks[4]) {
    for (size_t i = 0; i < 4; i++) {
        const size_t before = 64 * i;
        masks[i] = count >= before + 64 ? ~0ULL : count > before ? (1ULL << (count - before)) - 1 : 0;
    }
}

/// Turns the counter, the last word of a block, from the network's byte order to ours and back.
FAST static inline __m512i counter_order(void) {
    return _mm512_broadcast_i32x4(_mm_set_epi8(12, 13, 14, 15, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0));
}

/// The key stream of one group, not yet with the data.
FAST static inline void next_key_stream(const vector_aes *aes, __m512i *counters, __m512i stream[4]) {
    const __m512i order = counter_order();
    const __m512i four = _mm512_set_epi32(4, 0, 0, 0, 4, 0, 0, 0, 4, 0, 0, 0, 4, 0, 0, 0);
    __m512i key = _mm512_broadcast_i32x4(aes->round_keys[0]);
    for (int i = 0; i < 4; i++) {
        stream[i] = _mm512_xor_si512(_mm512_shuffle_epi8(*counters, order), key);
        *counters = _mm512_add_epi32(*counters, four);
    }
    for (int round = 1; round < aes->rounds; round++) {
        key = _mm512_broadcast_i32x4(aes->round_keys[round]);
        for (int i = 0; i < 4; i++) stream[i] = _mm512_aesenc_epi128(stream[i], key);
    }
    key = _mm512_broadcast_i32x4(aes->round_keys[aes->rounds]);
    for (int i = 0; i < 4; i++) stream[i] = _mm512_aesenclast_epi128(stream[i], key);
}
