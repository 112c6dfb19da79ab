#include "COpenSSL.h"

#include <limits.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

/// Intermediate certificates that a file may hold.
enum { CHAIN_LIMIT = 16 };

/// A server has no terminal at which somebody could type a password.
static int no_password(char *buffer, int size, int is_writing, void *context) {
    (void)buffer, (void)size, (void)is_writing, (void)context;
    return -1;
}

static int use_chain(SSL_CTX *context, BIO *bytes) {
    X509 *own = PEM_read_bio_X509_AUX(bytes, NULL, no_password, NULL);
    if (own == NULL) return 0;
    int is_used = SSL_CTX_use_certificate(context, own);
    X509_free(own);
    for (int count = 0; is_used == 1 && count < CHAIN_LIMIT; count++) {
        X509 *next = PEM_read_bio_X509(bytes, NULL, no_password, NULL);
        if (next == NULL) break;
        if (SSL_CTX_add0_chain_cert(context, next) != 1) {
            X509_free(next);
            return 0;
        }
    }
    // The end of the file is no error.
    if (is_used == 1) ERR_clear_error();
    return is_used == 1;
}

static int use_key(SSL_CTX *context, BIO *bytes) {
    EVP_PKEY *key = PEM_read_bio_PrivateKey(bytes, NULL, no_password, NULL);
    if (key == NULL) return 0;
    int is_used = SSL_CTX_use_PrivateKey(context, key);
    EVP_PKEY_free(key);
    return is_used == 1 && SSL_CTX_check_private_key(context) == 1;
}

SSL_CTX *rostrum_tls_server(const uint8_t *chain, size_t chain_length, const uint8_t *key, size_t key_length) {
    if (chain_length > INT_MAX || key_length > INT_MAX) return NULL;
    SSL_CTX *context = SSL_CTX_new(TLS_server_method());
    BIO *chain_bytes = BIO_new_mem_buf(chain, (int)chain_length);
    BIO *key_bytes = BIO_new_mem_buf(key, (int)key_length);
    int is_ready = context != NULL && chain_bytes != NULL && key_bytes != NULL
        && SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION) == 1 && use_chain(context, chain_bytes)
        && use_key(context, key_bytes);
    BIO_free(chain_bytes);
    BIO_free(key_bytes);
    if (!is_ready) {
        SSL_CTX_free(context);
        return NULL;
    }
    SSL_CTX_set_options(
        context, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION | SSL_OP_NO_TICKET | SSL_OP_CIPHER_SERVER_PREFERENCE);
    SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS);
    return context;
}

SSL *rostrum_tls_client(const char *host, int is_address) {
    SSL_CTX *context = SSL_CTX_new(TLS_client_method());
    if (context == NULL) return NULL;
    int is_ready = SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION) == 1
        && SSL_CTX_set_default_verify_paths(context) == 1;
    SSL_CTX_set_verify(context, SSL_VERIFY_PEER, NULL);
    SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
    SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS);
    SSL *ssl = is_ready ? SSL_new(context) : NULL;
    // `ssl` holds it.
    SSL_CTX_free(context);
    if (ssl == NULL) return NULL;
    // A server of many names has to be told which one is wanted; that is not said of addresses (RFC 6066 §3).
    is_ready = is_address ? X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), host) == 1
                          : SSL_set1_host(ssl, host) == 1 && SSL_set_tlsext_host_name(ssl, host) == 1;
    if (!is_ready) {
        SSL_free(ssl);
        return NULL;
    }
    SSL_set_connect_state(ssl);
    return ssl;
}
