// The packet transforms of SRTP (RFC 3711 §4, RFC 7714) on OpenSSL: one cipher context keyed once, one call per
// packet. The callers have checked all lengths. Functions returning int answer 1 for success and 0 for failure.
#pragma once
#include <openssl/evp.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include "rostrum_ctr.h"
#include "rostrum_gcm.h"
#include "rostrum_hmac.h"
#include "rostrum_tags.h"

enum {
    ROSTRUM_GCM_TAG = 16,
};

/// The session keys of one direction of SRTP or of SRTCP.
typedef struct {
    /// AES-GCM or AES-CTR; null until keyed, and where `stream` stands for it. Per packet only the IV changes.
    EVP_CIPHER_CTX *cipher;
    /// AES-CTR; null where the processor cannot.
    rostrum_ctr *stream;
    /// Seals media with AES-GCM in the cipher's place; null where the processor cannot.
    rostrum_gcm_sealer *sealer;
    /// Not used by AES-GCM.
    rostrum_hmac_sha1_key authentication;
    /// Session salt, laid where the IV wants it.
    uint8_t iv_mask[16];
    /// Where SSRC and packet index stand in the IV: 4 for counter mode, 2 for GCM.
    uint8_t iv_offset;
} rostrum_srtp_keys;

/// IV of a packet: SSRC and 48-bit index, xor salt (RFC 3711 §4.1.1, RFC 7714 §8.1, §9.1).
static inline void rostrum_srtp_iv(
    const rostrum_srtp_keys *keys, uint32_t ssrc, uint64_t index, uint8_t iv[16]) {
    uint8_t *at = iv + keys->iv_offset;
    memcpy(iv, keys->iv_mask, 16);
    for (int i = 0; i < 4; i++) at[i] ^= (uint8_t)(ssrc >> (24 - 8 * i));
    for (int i = 0; i < 6; i++) at[4 + i] ^= (uint8_t)(index >> (40 - 8 * i));
}

/// Encrypts `data[..<in_place]` where it stands and `body` behind it, and writes the tag to `tag`.
static inline int rostrum_srtp_gcm_seal(
    const rostrum_srtp_keys *keys, uint32_t ssrc, uint64_t index, const uint8_t *header, size_t header_length,
    const uint8_t *trailer, size_t trailer_length, uint8_t *data, size_t in_place, const uint8_t *body,
    size_t body_length, uint8_t *tag) {
    EVP_CIPHER_CTX *cipher = keys->cipher;
    uint8_t iv[16];
    rostrum_srtp_iv(keys, ssrc, index, iv);
    if (keys->sealer && trailer_length == 0 && rostrum_gcm_sealer_takes(header_length, in_place, body_length)) {
        rostrum_gcm_sealer_seal(
            keys->sealer, iv, header, header_length, data, in_place, body, body_length, tag);
        return 1;
    }
    if (!EVP_EncryptInit_ex2(cipher, NULL, NULL, iv, NULL)) return 0;
    if (EVP_Cipher(cipher, NULL, header, (unsigned)header_length) < 0) return 0;
    if (trailer_length > 0 && EVP_Cipher(cipher, NULL, trailer, (unsigned)trailer_length) < 0) return 0;
    if (in_place > 0 && EVP_Cipher(cipher, data, data, (unsigned)in_place) < 0) return 0;
    if (body_length > 0 && EVP_Cipher(cipher, data + in_place, body, (unsigned)body_length) < 0) return 0;
    if (EVP_Cipher(cipher, NULL, NULL, 0) < 0) return 0;
    return EVP_CIPHER_CTX_ctrl(cipher, EVP_CTRL_AEAD_GET_TAG, ROSTRUM_GCM_TAG, tag) > 0;
}

/// Decrypts in place; 0 if the tag is wrong, and then `data` is worthless.
static inline int rostrum_srtp_gcm_open(
    const rostrum_srtp_keys *keys, uint32_t ssrc, uint64_t index, const uint8_t *header, size_t header_length,
    const uint8_t *trailer, size_t trailer_length, uint8_t *data, size_t length, uint8_t *tag) {
    EVP_CIPHER_CTX *cipher = keys->cipher;
    uint8_t iv[16];
    rostrum_srtp_iv(keys, ssrc, index, iv);
    if (!EVP_DecryptInit_ex2(cipher, NULL, NULL, iv, NULL)) return 0;
    if (EVP_CIPHER_CTX_ctrl(cipher, EVP_CTRL_AEAD_SET_TAG, ROSTRUM_GCM_TAG, tag) <= 0) return 0;
    if (EVP_Cipher(cipher, NULL, header, (unsigned)header_length) < 0) return 0;
    if (trailer_length > 0 && EVP_Cipher(cipher, NULL, trailer, (unsigned)trailer_length) < 0) return 0;
    if (length > 0 && EVP_Cipher(cipher, data, data, (unsigned)length) < 0) return 0;
    return EVP_Cipher(cipher, NULL, NULL, 0) >= 0;
}

/// Applies the key stream to `data[..<in_place]` where it stands and to `body`, which lands behind it.
static inline int rostrum_srtp_ctr_apply(
    const rostrum_srtp_keys *keys, uint32_t ssrc, uint64_t index, uint8_t *data, size_t in_place,
    const uint8_t *body, size_t body_length) {
    EVP_CIPHER_CTX *cipher = keys->cipher;
    uint8_t iv[16];
    rostrum_srtp_iv(keys, ssrc, index, iv);
    if (keys->stream) {
        rostrum_ctr_apply(keys->stream, iv, data, in_place, body, body_length);
        return 1;
    }
    if (!EVP_EncryptInit_ex2(cipher, NULL, NULL, iv, NULL)) return 0;
    if (in_place > 0 && EVP_Cipher(cipher, data, data, (unsigned)in_place) < 0) return 0;
    return body_length == 0 || EVP_Cipher(cipher, data + in_place, body, (unsigned)body_length) >= 0;
}

/// Writes the 80-bit tag of `packet`, followed by the roll-over counter where `has_roc` is set.
static inline void rostrum_srtp_sha1_80(
    const rostrum_srtp_keys *keys, const uint8_t *packet, size_t length, int has_roc, uint32_t roc,
    uint8_t *tag) {
    uint8_t suffix[4] = {(uint8_t)(roc >> 24), (uint8_t)(roc >> 16), (uint8_t)(roc >> 8), (uint8_t)roc};
    uint8_t code[SHA_DIGEST_LENGTH];
    rostrum_hmac_sha1_run(&keys->authentication, packet, length, suffix, has_roc ? 4 : 0, code);
    memcpy(tag, code, ROSTRUM_SHA1_80_TAG);
}

/// Whether `tag` is the 80-bit tag of `packet`; compares in constant time.
static inline int rostrum_srtp_sha1_80_matches(
    const rostrum_srtp_keys *keys, const uint8_t *packet, size_t length, int has_roc, uint32_t roc,
    const uint8_t *tag) {
    uint8_t expected[ROSTRUM_SHA1_80_TAG];
    rostrum_srtp_sha1_80(keys, packet, length, has_roc, roc, expected);
    return CRYPTO_memcmp(expected, tag, sizeof expected) == 0;
}
