// SRTP's tags of many packets at a time; see tags.c.
#pragma once
#include <stddef.h>
#include <stdint.h>
#include "rostrum_hmac.h"

enum {
    /// HMAC-SHA1 cut to 80 bits.
    ROSTRUM_SHA1_80_TAG = 10,
    /// Packets that are hashed side by side.
    ROSTRUM_TAG_LANES = 16,
};

/// What the tag of a packet is made with.
typedef struct {
    rostrum_hmac_sha1_key key;
    /// Roll-over counter, hashed behind the packet (RFC 3711 §4.2).
    uint32_t roc;
    /// Where the packet stands, and its length without the tag.
    uint32_t offset, length;
} rostrum_sha1_tag;

/// Writes the tags of `count` packets behind them: of up to ROSTRUM_TAG_LANES side by side, where the processor can.
void rostrum_sha1_tags_write(const rostrum_sha1_tag *tags, size_t count, uint8_t *bytes);

/// The same, one after the other, by OpenSSL.
static inline void rostrum_sha1_tags_write_singly(const rostrum_sha1_tag *tags, size_t count, uint8_t *bytes) {
    for (size_t i = 0; i < count; i++) {
        const uint32_t roc = tags[i].roc;
        const uint8_t suffix[4] = {(uint8_t)(roc >> 24), (uint8_t)(roc >> 16), (uint8_t)(roc >> 8), (uint8_t)roc};
        uint8_t code[SHA_DIGEST_LENGTH], *packet = bytes + tags[i].offset;
        rostrum_hmac_sha1_run(&tags[i].key, packet, tags[i].length, suffix, sizeof suffix, code);
        memcpy(packet + tags[i].length, code, ROSTRUM_SHA1_80_TAG);
    }
}
