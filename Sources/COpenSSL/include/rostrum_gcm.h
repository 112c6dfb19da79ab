// AES-GCM sealing for processors that can do it four blocks at a time; see gcm.c.
#pragma once
#include <stddef.h>
#include <stdint.h>

/// The key of one direction, ready to use.
typedef struct rostrum_gcm_sealer rostrum_gcm_sealer;

int rostrum_gcm_sealer_is_usable(void);

/// - Parameter length: of the key, 16 or 32.
/// - Returns: null where the processor cannot, or without memory.
rostrum_gcm_sealer *rostrum_gcm_sealer_make(const uint8_t *key, size_t length);
void rostrum_gcm_sealer_free(rostrum_gcm_sealer *sealer);

/// Whether a packet of such lengths can be sealed.
int rostrum_gcm_sealer_takes(size_t header_length, size_t in_place, size_t body_length);

/// Encrypts `data[..<in_place]` where it stands and `body` behind it, and writes 16 bytes of tag to `tag`.
void rostrum_gcm_sealer_seal(
    const rostrum_gcm_sealer *sealer, const uint8_t iv[12], const uint8_t *header, size_t header_length,
    uint8_t *data, size_t in_place, const uint8_t *body, size_t body_length, uint8_t *tag);
