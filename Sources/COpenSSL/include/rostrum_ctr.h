// AES in counter mode for processors that can do it four blocks at a time; see ctr.c.
#pragma once
#include <stddef.h>
#include <stdint.h>

/// A key, ready to use.
typedef struct rostrum_ctr rostrum_ctr;

/// - Parameter key: 16 bytes.
/// - Returns: null where the processor cannot, or without memory.
rostrum_ctr *rostrum_ctr_make(const uint8_t *key);
void rostrum_ctr_free(rostrum_ctr *ctr);

/// Applies the key stream to `data[..<in_place]` where it stands and to `body`, which lands behind it.
///
/// - Parameter iv: ends in two bytes of zero, and so at most 65,536 blocks may follow.
void rostrum_ctr_apply(
    const rostrum_ctr *ctr, const uint8_t iv[16], uint8_t *data, size_t in_place, const uint8_t *body,
    size_t body_length);
