// An OpenSSL library context with little in it, for handshakes.
//
// To read a peer's public key, OpenSSL 3 lists every key type and every decoder of every provider, for each
// certificate anew: a third of what a handshake costs. This context has the algorithms of the default provider, but
// of key types and decoders only those that certificates and key exchanges of WebRTC need. It reads no openssl.cnf.
//
// The default provider is loaded into a context of its own, and a provider made here hands on what it offers: the
// implementations are the default provider's, and so is the provider context that they are given.
#include "include/rostrum_dtls.h"
#include <openssl/core_dispatch.h>
#include <openssl/crypto.h>
#include <openssl/provider.h>
#include <string.h>

enum { MOST = 16 };

static OSSL_PROVIDER *offering;
static OSSL_LIB_CTX *library;
static OSSL_ALGORITHM key_types[MOST + 1];
static OSSL_ALGORITHM decoders[MOST + 1];

/// Whether `name` is among `names`, which colons separate.
static int is_named(const char *names, const char *name) {
    const size_t length = strlen(name);
    for (; names; names = strchr(names, ':')) {
        if (*names == ':') names++;
        if (strncmp(names, name, length) == 0 && (names[length] == '\0' || names[length] == ':')) return 1;
    }
    return 0;
}

/// Of key exchanges and certificates; and those through which TLS reaches its key derivation.
static int is_key_type(const OSSL_ALGORITHM *algorithm) {
    static const char *const names[] = {"EC", "RSA", "X25519", "HMAC", "HKDF", "TLS1-PRF"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (is_named(algorithm->algorithm_names, names[i])) return 1;
    }
    return 0;
}

/// Reads the public key of a certificate, or a private key of our own.
static int is_decoder(const OSSL_ALGORITHM *algorithm) {
    const char *properties = algorithm->property_definition;
    if (!strstr(properties, "input=der")) return 0;
    if (is_named(algorithm->algorithm_names, "EC")) {
        return strstr(properties, "structure=SubjectPublicKeyInfo") || strstr(properties, "structure=type-specific");
    }
    return is_named(algorithm->algorithm_names, "RSA") && strstr(properties, "structure=SubjectPublicKeyInfo");
}

static void choose(int operation, int (*is_wanted)(const OSSL_ALGORITHM *), OSSL_ALGORITHM *chosen) {
    int no_cache;
    const OSSL_ALGORITHM *offered = OSSL_PROVIDER_query_operation(offering, operation, &no_cache);
    int count = 0;
    for (; offered && offered->algorithm_names && count < MOST; offered++) {
        if (is_wanted(offered)) chosen[count++] = *offered;
    }
}

static const OSSL_ALGORITHM *query(void *context, int operation, int *no_cache) {
    (void)context;
    *no_cache = 0;
    switch (operation) {
    case OSSL_OP_KEYMGMT: return key_types;
    case OSSL_OP_DECODER: return decoders;
    case OSSL_OP_ENCODER: case OSSL_OP_STORE: return NULL;
    default: return OSSL_PROVIDER_query_operation(offering, operation, no_cache);
    }
}

static const OSSL_PARAM *gettable_params(void *context) {
    (void)context;
    return OSSL_PROVIDER_gettable_params(offering);
}

static int get_params(void *context, OSSL_PARAM params[]) {
    (void)context;
    return OSSL_PROVIDER_get_params(offering, params);
}

static int get_capabilities(void *context, const char *capability, OSSL_CALLBACK *callback, void *argument) {
    (void)context;
    return OSSL_PROVIDER_get_capabilities(offering, capability, callback, argument);
}

static int begin(
    const OSSL_CORE_HANDLE *handle, const OSSL_DISPATCH *core, const OSSL_DISPATCH **functions, void **context) {
    static const OSSL_DISPATCH table[] = {
        {OSSL_FUNC_PROVIDER_QUERY_OPERATION, (void (*)(void))query},
        {OSSL_FUNC_PROVIDER_GETTABLE_PARAMS, (void (*)(void))gettable_params},
        {OSSL_FUNC_PROVIDER_GET_PARAMS, (void (*)(void))get_params},
        {OSSL_FUNC_PROVIDER_GET_CAPABILITIES, (void (*)(void))get_capabilities},
        {0, NULL},
    };
    (void)handle;
    (void)core;
    *functions = table;
    *context = OSSL_PROVIDER_get0_provider_ctx(offering);
    return 1;
}

static void make(void) {
    static const char name[] = "handshakes";
    OSSL_LIB_CTX *whole = OSSL_LIB_CTX_new();
    OSSL_LIB_CTX *small = OSSL_LIB_CTX_new();
    if (whole && small && (offering = OSSL_PROVIDER_load(whole, "default"))) {
        choose(OSSL_OP_KEYMGMT, is_key_type, key_types);
        choose(OSSL_OP_DECODER, is_decoder, decoders);
        if (OSSL_PROVIDER_add_builtin(small, name, begin) == 1 && OSSL_PROVIDER_load(small, name)) {
            // Both live as long as the process.
            library = small;
            return;
        }
        OSSL_PROVIDER_unload(offering);
    }
    OSSL_LIB_CTX_free(small);
    OSSL_LIB_CTX_free(whole);
}

OSSL_LIB_CTX *rostrum_dtls_library(void) {
    static CRYPTO_ONCE once = CRYPTO_ONCE_STATIC_INIT;
    CRYPTO_THREAD_run_once(&once, make);
    return library;
}
