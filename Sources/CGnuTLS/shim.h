#include <gnutls/abstract.h>
#include <gnutls/gnutls.h>
#include <gnutls/x509.h>

/* Refuses every handshake. libmicrohttpd requires a source of certificates for its daemon, but each connection gets its
   own credentials before the handshake. A connection that still has the daemon's is an error and must fail. */
static inline int shim_refuse_handshake(gnutls_session_t session, const gnutls_datum_t *authorities, int authority_count,
                                        const gnutls_pk_algorithm_t *algorithms, int algorithm_count,
                                        gnutls_pcert_st **certificates, unsigned int *certificate_count,
                                        gnutls_privkey_t *key)
{
    (void)session, (void)authorities, (void)authority_count, (void)algorithms, (void)algorithm_count;
    (void)certificates, (void)certificate_count, (void)key;
    return -1;
}

/* Returns the address of that function for MHD_OPTION_HTTPS_CERT_CALLBACK. */
static inline void *shim_refusing_callback(void)
{
    gnutls_certificate_retrieve_function2 *callback = shim_refuse_handshake;
    return (void *)callback;
}
