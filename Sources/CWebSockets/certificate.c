// Certificates of the server: read, looked at, and given to the connections that begin from then on.
// timegm:
#define _GNU_SOURCE
#include "CWebSockets.h"
#include <arpa/inet.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct cws_certificate {
    X509 *leaf;
    STACK_OF(X509) *chain;
    EVP_PKEY *key;
};

/// No certificate file is longer.
enum { LONGEST_CHAIN = 16 };

static void describe(char *problem, size_t room, const char *text) {
    unsigned long code = ERR_get_error();
    if (text || !code)
        snprintf(problem, room, "%s", text ? text : "no reason given");
    else
        ERR_error_string_n(code, problem, room);
    ERR_clear_error();
}

/// A key behind a pass phrase cannot be read without somebody who knows it.
static int no_pass_phrase(char *buffer, int size, int is_writing, void *context) {
    (void)buffer, (void)size, (void)is_writing, (void)context;
    return -1;
}

static int read_chain(struct cws_certificate *certificate, BIO *file) {
    certificate->leaf = PEM_read_bio_X509_AUX(file, NULL, no_pass_phrase, NULL);
    certificate->chain = sk_X509_new_null();
    if (!certificate->leaf || !certificate->chain)
        return 0;
    X509 *next;
    while ((next = PEM_read_bio_X509(file, NULL, no_pass_phrase, NULL))) {
        if (sk_X509_num(certificate->chain) >= LONGEST_CHAIN || !sk_X509_push(certificate->chain, next)) {
            X509_free(next);
            return 0;
        }
    }
    // The end of the file is told as an error.
    int is_end = ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;
    ERR_clear_error();
    return is_end;
}

struct cws_certificate *cws_certificate_read(
    const char *certificate_path, const char *key_path, char *problem, size_t room) {
    ERR_clear_error();
    struct cws_certificate *certificate = calloc(1, sizeof(*certificate));
    BIO *file = certificate ? BIO_new_file(certificate_path, "r") : NULL;
    int is_read = file && read_chain(certificate, file);
    BIO_free(file);
    if (is_read && (file = BIO_new_file(key_path, "r"))) {
        certificate->key = PEM_read_bio_PrivateKey(file, NULL, no_pass_phrase, NULL);
        BIO_free(file);
    }
    if (is_read && certificate->key) {
        if (X509_check_private_key(certificate->leaf, certificate->key))
            return certificate;
        describe(problem, room, "the key is not the certificate's");
    } else {
        describe(problem, room, NULL);
    }
    cws_certificate_free(certificate);
    return NULL;
}

void cws_certificate_free(struct cws_certificate *certificate) {
    if (!certificate)
        return;
    X509_free(certificate->leaf);
    sk_X509_pop_free(certificate->chain, X509_free);
    EVP_PKEY_free(certificate->key);
    free(certificate);
}

/// Seconds since 1970; 0 for a time that cannot be read.
static int64_t seconds(const ASN1_TIME *time) {
    struct tm parts;
    return time && ASN1_TIME_to_tm(time, &parts) ? (int64_t)timegm(&parts) : 0;
}

int64_t cws_certificate_not_before(const struct cws_certificate *certificate) {
    return seconds(X509_get0_notBefore(certificate->leaf));
}

int64_t cws_certificate_not_after(const struct cws_certificate *certificate) {
    int64_t earliest = seconds(X509_get0_notAfter(certificate->leaf));
    for (int i = 0; i < sk_X509_num(certificate->chain); i++) {
        int64_t end = seconds(X509_get0_notAfter(sk_X509_value(certificate->chain, i)));
        if (end < earliest)
            earliest = end;
    }
    return earliest;
}

int cws_certificate_is_alone(const struct cws_certificate *certificate) {
    return sk_X509_num(certificate->chain) == 0;
}

int cws_certificate_is_self_issued(const struct cws_certificate *certificate) {
    return X509_NAME_cmp(X509_get_subject_name(certificate->leaf), X509_get_issuer_name(certificate->leaf)) == 0;
}

size_t cws_certificate_names(const struct cws_certificate *certificate, char *names, size_t room) {
    GENERAL_NAMES *all = X509_get_ext_d2i(certificate->leaf, NID_subject_alt_name, NULL, NULL);
    size_t length = 0;
    for (int i = 0; i < sk_GENERAL_NAME_num(all); i++) {
        const GENERAL_NAME *name = sk_GENERAL_NAME_value(all, i);
        char address[64];
        const unsigned char *text = (const unsigned char *)address;
        size_t count = 0;
        if (name->type == GEN_DNS) {
            text = ASN1_STRING_get0_data(name->d.dNSName);
            count = (size_t)ASN1_STRING_length(name->d.dNSName);
        } else if (name->type == GEN_IPADD) {
            const unsigned char *bytes = ASN1_STRING_get0_data(name->d.iPAddress);
            int size = ASN1_STRING_length(name->d.iPAddress);
            int family = size == 4 ? AF_INET : size == 16 ? AF_INET6 : 0;
            if (family && inet_ntop(family, bytes, address, sizeof(address)))
                count = strlen(address);
        }
        if (count == 0 || length + count + 1 > room)
            continue;
        memcpy(names + length, text, count);
        length += count;
        names[length++] = '\n';
    }
    GENERAL_NAMES_free(all);
    return length;
}

// Called at the beginning of each handshake.
static int present(SSL *connection, void *context) {
    const struct cws_certificate *certificate = *(struct cws_certificate **)context;
    if (!certificate)
        return 1;
    // The one of the start may be of another kind, and would stay beside it.
    SSL_certs_clear(connection);
    return SSL_use_cert_and_key(connection, certificate->leaf, certificate->key, certificate->chain, 1);
}

void cws_present(void *tls_context, struct cws_certificate **certificate) {
    SSL_CTX_set_cert_cb(tls_context, present, certificate);
}
