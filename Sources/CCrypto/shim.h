#include <openssl/evp.h>
#include <openssl/bio.h>
#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/ec.h>
#include <openssl/hmac.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/rsa.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/sha.h>
#include <string.h>

// SHA-256 with access to its chaining state. OpenSSL 3 deprecates these calls in favour of EVP, which cannot start from
// a saved state without allocating: an HMAC over a saved key state costs two compressions here, and several allocations
// with EVP.

#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wdeprecated-declarations"

// Saves the state after one block as the first or second saved state. Returns 1 on success.
static inline int ccrypto_sha256_begin(void *states, int place, const void *block) {
    SHA256_CTX context;
    int done = SHA256_Init(&context) & SHA256_Update(&context, block, SHA256_CBLOCK);
    memcpy((unsigned char *)states + place * sizeof context, &context, sizeof context);
    OPENSSL_cleanse(&context, sizeof context);
    return done;
}

// Computes a hash; EVP would take 1,000 instructions more for each call. Returns 1 on success.
static inline int ccrypto_sha256(const void *message, size_t length, void *hash) {
    SHA256_CTX context;
    int done = SHA256_Init(&context) & SHA256_Update(&context, message, length) & SHA256_Final(hash, &context);
    OPENSSL_cleanse(&context, sizeof context);
    return done;
}

// Computes an HMAC from the saved states of the inner and the outer hash (RFC 2104, section 4). Returns 1 on success.
static inline int ccrypto_hmac_sha256(const void *states, const void *message, size_t length, void *code) {
    SHA256_CTX context;
    memcpy(&context, states, sizeof context);
    int done = SHA256_Update(&context, message, length) & SHA256_Final(code, &context);
    memcpy(&context, (const unsigned char *)states + sizeof context, sizeof context);
    done &= SHA256_Update(&context, code, SHA256_DIGEST_LENGTH) & SHA256_Final(code, &context);
    OPENSSL_cleanse(&context, sizeof context);
    return done;
}

#pragma clang diagnostic pop

// Empties the thread's error queue. Returns 1 if memory was refused.
static inline int ccrypto_take_errors(void) {
    int was_refused = 0;
    for (unsigned long code; (code = ERR_get_error()) != 0;)
        if (ERR_GET_REASON(code) == ERR_R_MALLOC_FAILURE) was_refused = 1;
    return was_refused;
}

static inline size_t ccrypto_sha256_state_size(void) { return sizeof(SHA256_CTX); }
