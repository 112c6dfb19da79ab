// HMAC (RFC 2104) on OpenSSL's low-level hashes: nothing is allocated and nothing can fail.
#pragma once
#include <openssl/crypto.h>
#include <openssl/sha.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { ROSTRUM_HMAC_BLOCK = 64 };

/// The hash states after the padded keys: HMAC without its first two blocks.
typedef struct {
    uint32_t inner[5], outer[5];
} rostrum_hmac_sha1_key;

/// The state after the one block of the padded key.
static inline void rostrum_hmac_sha1_pause(const uint8_t pad[ROSTRUM_HMAC_BLOCK], uint32_t state[5]) {
    SHA_CTX context;
    SHA1_Init(&context);
    SHA1_Update(&context, pad, ROSTRUM_HMAC_BLOCK);
    const uint32_t words[5] = {context.h0, context.h1, context.h2, context.h3, context.h4};
    memcpy(state, words, sizeof words);
    OPENSSL_cleanse(&context, sizeof context);
}

/// Goes on behind the padded key.
static inline void rostrum_hmac_sha1_resume(SHA_CTX *context, const uint32_t state[5]) {
    context->h0 = state[0];
    context->h1 = state[1];
    context->h2 = state[2];
    context->h3 = state[3];
    context->h4 = state[4];
    context->Nl = 8 * ROSTRUM_HMAC_BLOCK;
    context->Nh = 0;
    context->num = 0;
}

static inline void rostrum_hmac_pad(uint8_t pad[ROSTRUM_HMAC_BLOCK], uint8_t with) {
    for (size_t i = 0; i < ROSTRUM_HMAC_BLOCK; i++) pad[i] ^= with;
}

static inline void rostrum_hmac_sha1_init(rostrum_hmac_sha1_key *state, const uint8_t *key, size_t length) {
    uint8_t pad[ROSTRUM_HMAC_BLOCK] = {0};
    if (length > ROSTRUM_HMAC_BLOCK) {
        SHA1(key, length, pad);
    } else if (length > 0) {
        memcpy(pad, key, length);
    }
    rostrum_hmac_pad(pad, 0x36);
    rostrum_hmac_sha1_pause(pad, state->inner);
    rostrum_hmac_pad(pad, 0x36 ^ 0x5c);
    rostrum_hmac_sha1_pause(pad, state->outer);
    OPENSSL_cleanse(pad, sizeof pad);
}

/// Writes 20 bytes to `code`: the HMAC of `message` followed by `suffix`.
static inline void rostrum_hmac_sha1_run(
    const rostrum_hmac_sha1_key *state, const uint8_t *message, size_t length, const uint8_t *suffix,
    size_t suffix_length, uint8_t code[SHA_DIGEST_LENGTH]) {
    SHA_CTX context;
    rostrum_hmac_sha1_resume(&context, state->inner);
    SHA1_Update(&context, message, length);
    SHA1_Update(&context, suffix, suffix_length);
    SHA1_Final(code, &context);
    rostrum_hmac_sha1_resume(&context, state->outer);
    SHA1_Update(&context, code, SHA_DIGEST_LENGTH);
    SHA1_Final(code, &context);
}

/// Writes 20 bytes to `code`.
static inline void rostrum_hmac_sha1(
    const uint8_t *key, size_t key_length, const uint8_t *message, size_t length,
    uint8_t code[SHA_DIGEST_LENGTH]) {
    rostrum_hmac_sha1_key state;
    rostrum_hmac_sha1_init(&state, key, key_length);
    rostrum_hmac_sha1_run(&state, message, length, NULL, 0, code);
    OPENSSL_cleanse(&state, sizeof state);
}

/// Writes 32 bytes to `code`.
static inline void rostrum_hmac_sha256(
    const uint8_t *key, size_t key_length, const uint8_t *message, size_t length,
    uint8_t code[SHA256_DIGEST_LENGTH]) {
    uint8_t pad[ROSTRUM_HMAC_BLOCK] = {0};
    SHA256_CTX context;
    if (key_length > ROSTRUM_HMAC_BLOCK) {
        SHA256(key, key_length, pad);
    } else if (key_length > 0) {
        memcpy(pad, key, key_length);
    }
    rostrum_hmac_pad(pad, 0x36);
    SHA256_Init(&context);
    SHA256_Update(&context, pad, sizeof pad);
    SHA256_Update(&context, message, length);
    SHA256_Final(code, &context);
    rostrum_hmac_pad(pad, 0x36 ^ 0x5c);
    SHA256_Init(&context);
    SHA256_Update(&context, pad, sizeof pad);
    SHA256_Update(&context, code, SHA256_DIGEST_LENGTH);
    SHA256_Final(code, &context);
    OPENSSL_cleanse(pad, sizeof pad);
    OPENSSL_cleanse(&context, sizeof context);
}
