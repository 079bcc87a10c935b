#include <curl/curl.h>

// curl_easy_setopt, curl_easy_getinfo and curl_multi_setopt are variadic, and Swift cannot call variadic C functions.
// Each wrapper fixes the type of the last argument; the caller chooses the one that the option's manual page gives.

static inline CURLcode ccurl_easy_set_long(CURL *easy, CURLoption option, long value) {
    return curl_easy_setopt(easy, option, value);
}

static inline CURLcode ccurl_easy_set_pointer(CURL *easy, CURLoption option, const void *value) {
    return curl_easy_setopt(easy, option, value);
}

static inline CURLcode ccurl_easy_set_string(CURL *easy, CURLoption option, const char *value) {
    return curl_easy_setopt(easy, option, value);
}

// CURLOPT_WRITEFUNCTION and CURLOPT_HEADERFUNCTION take functions of the same type.
static inline CURLcode ccurl_easy_set_receiver(CURL *easy, CURLoption option, curl_write_callback function) {
    return curl_easy_setopt(easy, option, function);
}

static inline CURLcode ccurl_easy_set_prerequest(CURL *easy, curl_prereq_callback function) {
    return curl_easy_setopt(easy, CURLOPT_PREREQFUNCTION, function);
}

static inline CURLcode ccurl_easy_get_long(CURL *easy, CURLINFO info, long *value) {
    return curl_easy_getinfo(easy, info, value);
}

static inline CURLcode ccurl_easy_get_string(CURL *easy, CURLINFO info, const char **value) {
    return curl_easy_getinfo(easy, info, value);
}

static inline CURLcode ccurl_easy_get_socket(CURL *easy, curl_socket_t *value) {
    return curl_easy_getinfo(easy, CURLINFO_ACTIVESOCKET, value);
}

static inline CURLcode ccurl_easy_get_private(CURL *easy, void **value) {
    return curl_easy_getinfo(easy, CURLINFO_PRIVATE, value);
}

static inline CURLMcode ccurl_multi_set_long(CURLM *multi, CURLMoption option, long value) {
    return curl_multi_setopt(multi, option, value);
}

static inline CURLSHcode ccurl_share_set_long(CURLSH *share, CURLSHoption option, long value) {
    return curl_share_setopt(share, option, value);
}

// OpenSSL's declaration (openssl/ssl.h), repeated because two Swift modules must not import the same headers.
extern void SSL_get0_alpn_selected(const struct ssl_st *ssl, const unsigned char **name, unsigned int *length);

// Returns 1 if the transfer's connection agreed on HTTP/2 during its TLS handshake. CURLINFO_HTTP_VERSION repeats the
// status line, in which an HTTP/1.1 server can claim any version.
static inline int ccurl_connection_is_http2(CURL *easy) {
    struct curl_tlssessioninfo *session = NULL;
    if (curl_easy_getinfo(easy, CURLINFO_TLS_SSL_PTR, &session) != CURLE_OK || session == NULL) return 0;
    if (session->backend != CURLSSLBACKEND_OPENSSL || session->internals == NULL) return 0;
    const unsigned char *name = NULL;
    unsigned int length = 0;
    SSL_get0_alpn_selected((const struct ssl_st *)session->internals, &name, &length);
    return length == 2 && name[0] == 'h' && name[1] == '2';
}

// OpenSSL's declarations (openssl/ssl.h), for the same reason. The numbers are those of macros.
extern int SSL_CTX_set_alpn_protos(struct ssl_ctx_st *context, const unsigned char *names, unsigned int length);
extern long SSL_CTX_ctrl(struct ssl_ctx_st *context, int command, long number, void *pointer);

static CURLcode ccurl_prepare_tls(CURL *easy, void *context, void *unused) {
    (void)easy;
    (void)unused;
    enum { set_mode = 33, clear_mode = 78 };
    enum { partial_write = 1, moving_write_buffer = 2, release_buffers = 16 };
    struct ssl_ctx_st *tls = (struct ssl_ctx_st *)context;
    // A write that is repeated may come from a buffer that has grown since.
    SSL_CTX_ctrl(tls, set_mode, partial_write | moving_write_buffer, NULL);
    // libcurl frees the buffers whenever they are empty, which costs time and leaves their content in freed memory.
    SSL_CTX_ctrl(tls, clear_mode, release_buffers, NULL);
    static const unsigned char names[] = "\2h2\10http/1.1";
    return SSL_CTX_set_alpn_protos(tls, names, sizeof names - 1) == 0 ? CURLE_OK : CURLE_OUT_OF_MEMORY;
}

// Prepares the TLS connection of a handle with CURLOPT_CONNECT_ONLY, and offers HTTP/2 and HTTP/1.1. libcurl must not
// offer protocols itself (CURLOPT_SSL_ENABLE_ALPN): if it knew that HTTP/2 was agreed on, it would frame it itself.
static inline CURLcode ccurl_easy_offer_http2(CURL *easy) {
    return curl_easy_setopt(easy, CURLOPT_SSL_CTX_FUNCTION, ccurl_prepare_tls);
}

// OpenSSL's declarations (openssl/bio.h, openssl/ssl.h), for the same reason.
extern const struct bio_method_st *BIO_f_buffer(void);
extern struct bio_st *BIO_new(const struct bio_method_st *method);
extern int BIO_free(struct bio_st *bio);
extern int BIO_up_ref(struct bio_st *bio);
extern struct bio_st *BIO_push(struct bio_st *bio, struct bio_st *next);
extern long BIO_int_ctrl(struct bio_st *bio, int command, long number, int other);
extern struct bio_st *SSL_get_rbio(const struct ssl_st *ssl);
extern void SSL_set0_rbio(struct ssl_st *ssl, struct bio_st *bio);

// Puts a buffer between the socket and the TLS layer of an established connection, so that one recv takes all that has
// arrived, instead of two for each record. OpenSSL's own reading ahead does the same, but moves the rest of its buffer
// to the front for each record: with a hundred small answers in the buffer that costs more than to decrypt them.
static inline CURLcode ccurl_connection_buffer_input(CURL *easy) {
    enum { set_buffer_size = 117, buffer_size = 65536 };
    struct curl_tlssessioninfo *session = NULL;
    CURLcode result = curl_easy_getinfo(easy, CURLINFO_TLS_SSL_PTR, &session);
    if (result != CURLE_OK) return result;
    if (session == NULL || session->backend != CURLSSLBACKEND_OPENSSL || session->internals == NULL)
        return CURLE_SSL_CONNECT_ERROR;
    struct ssl_st *ssl = (struct ssl_st *)session->internals;
    struct bio_st *source = SSL_get_rbio(ssl);
    struct bio_st *buffer = BIO_new(BIO_f_buffer());
    if (source == NULL || buffer == NULL || BIO_int_ctrl(buffer, set_buffer_size, buffer_size, 0) != 1
        || BIO_up_ref(source) != 1) {
        BIO_free(buffer);
        return CURLE_OUT_OF_MEMORY;
    }
    // The connection now owns the buffer, which owns its own reference to the source.
    SSL_set0_rbio(ssl, BIO_push(buffer, source));
    return CURLE_OK;
}

// CURL_GLOBAL_DEFAULT is a macro made of other macros, which Swift does not import.
static inline CURLcode ccurl_global_init(void) {
    return curl_global_init(CURL_GLOBAL_DEFAULT);
}
