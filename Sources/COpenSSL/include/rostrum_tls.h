// TLS for a server whose bytes others carry: OpenSSL's macros as functions, and certificates as files hold them.
#pragma once
#include <openssl/ssl.h>
#include <stddef.h>
#include <stdint.h>

/// A context with a certificate and its chain, and the key, both PEM; never asks anybody for a password.
/// @return null for what cannot be read, or does not belong together.
SSL_CTX *rostrum_tls_server(const uint8_t *chain, size_t chain_length, const uint8_t *key, size_t key_length);
