// OpenSSL, and inline functions for what Swift cannot call: macros, and chains of calls on the packet path.
#pragma once
// The low-level SHA functions keep their state in the caller's memory: no allocation, and a copy is a struct copy.
#define OPENSSL_SUPPRESS_DEPRECATED
#include <openssl/bio.h>
#include <openssl/crypto.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/rand.h>
#include <openssl/sha.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <stdlib.h>
#include "rostrum_cache.h"
#include "rostrum_ctr.h"
#include "rostrum_dtls.h"
#include "rostrum_gcm.h"
#include "rostrum_hmac.h"
#include "rostrum_srtp.h"
#include "rostrum_tags.h"
#include "rostrum_tls.h"
