// OpenSSL's DTLS macros as functions.
#pragma once
#include <openssl/bio.h>
#include <openssl/ec.h>
#include <openssl/ssl.h>
#include <stdint.h>

/// A library context in which a handshake costs a third less; see handshake_library.c.
///
/// One for the process. Null, which stands for OpenSSL's own, if it cannot be made.
OSSL_LIB_CTX *rostrum_dtls_library(void);

/// ICE has proved the address, so that no cookie is needed; tickets and renegotiation have no use in WebRTC.
static inline uint64_t rostrum_dtls_options(void) {
    return SSL_OP_NO_QUERY_MTU | SSL_OP_NO_TICKET | SSL_OP_NO_RENEGOTIATION | SSL_OP_CIPHER_SERVER_PREFERENCE
        | SSL_OP_NO_COMPRESSION;
}

static inline void rostrum_dtls_prepare(SSL_CTX *context, long maximum_certificates) {
    SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_max_cert_list(context, maximum_certificates);
    SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS);
}

static inline int rostrum_dtls_only_1_2(SSL_CTX *context) {
    return SSL_CTX_set_min_proto_version(context, DTLS1_2_VERSION)
        && SSL_CTX_set_max_proto_version(context, DTLS1_2_VERSION);
}

static inline int rostrum_dtls_groups(SSL_CTX *context, const char *names) {
    return (int)SSL_CTX_set1_groups_list(context, names);
}

/// A new key pair on P-256; null on failure.
static inline EVP_PKEY *rostrum_make_p256_key(void) {
    return EVP_EC_gen("P-256");
}

static inline void rostrum_dtls_set_mtu(SSL *ssl, long bytes) {
    SSL_set_mtu(ssl, bytes);
}

/// A memory BIO that says "try again" when it is empty; null on failure.
static inline BIO *rostrum_dtls_make_bio(void) {
    BIO *bio = BIO_new(BIO_s_mem());
    if (bio) BIO_set_mem_eof_return(bio, -1);
    return bio;
}
