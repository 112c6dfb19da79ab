// TLS whose bytes others carry: OpenSSL's macros as functions, and certificates as files hold them.
#pragma once
#include <openssl/ssl.h>
#include <stddef.h>
#include <stdint.h>

/// A context with a certificate and its chain, and the key, both PEM; never asks anybody for a password.
/// @return null for what cannot be read, or does not belong together.
SSL_CTX *rostrum_tls_server(const uint8_t *chain, size_t chain_length, const uint8_t *key, size_t key_length);

/// A client's end, which verifies that the server's certificate is one for `host`, by authorities that the system trusts.
/// @param is_address whether `host` is an IP address.
/// @return null where there is no memory for it.
SSL *rostrum_tls_client(const char *host, int is_address);
