#include "TLSListener.h"

#include <openssl/ssl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct tls_listener {
    SSL_CTX *context;
    unsigned char protocol[32];
};

struct tls_peer {
    SSL *tls;
    int socket;
};

static int choose(SSL *tls, const unsigned char **out, unsigned char *length, const unsigned char *offered,
    unsigned int offered_length, void *context) {
    (void)tls;
    const tls_listener *listener = context;
    int result = SSL_select_next_proto((unsigned char **)out, length, listener->protocol, listener->protocol[0] + 1u,
        offered, offered_length);
    return result == OPENSSL_NPN_NEGOTIATED ? SSL_TLSEXT_ERR_OK : SSL_TLSEXT_ERR_NOACK;
}

tls_listener *tls_listener_make(const char *certificate, const char *key, const char *protocol) {
    tls_listener *listener = calloc(1, sizeof *listener);
    listener->context = SSL_CTX_new(TLS_server_method());
    listener->protocol[0] = (unsigned char)strlen(protocol);
    memcpy(listener->protocol + 1, protocol, strlen(protocol));
    SSL_CTX_set_alpn_select_cb(listener->context, choose, listener);
    if (SSL_CTX_use_certificate_chain_file(listener->context, certificate) != 1
        || SSL_CTX_use_PrivateKey_file(listener->context, key, SSL_FILETYPE_PEM) != 1) {
        SSL_CTX_free(listener->context);
        free(listener);
        return NULL;
    }
    return listener;
}

tls_peer *tls_peer_accept(tls_listener *listener, int socket) {
    // A write to a connection that the client has closed must fail, not end the process.
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &signals, NULL);
    tls_peer *peer = calloc(1, sizeof *peer);
    peer->tls = SSL_new(listener->context);
    peer->socket = socket;
    SSL_set_fd(peer->tls, socket);
    if (SSL_accept(peer->tls) == 1) return peer;
    SSL_free(peer->tls);
    close(socket);
    free(peer);
    return NULL;
}

int tls_peer_is_resumed(tls_peer *peer) { return SSL_session_reused(peer->tls); }

int tls_peer_read(tls_peer *peer, void *bytes, int count) { return SSL_read(peer->tls, bytes, count); }

int tls_peer_write(tls_peer *peer, const void *bytes, int count) { return SSL_write(peer->tls, bytes, count) == count; }

void tls_peer_close(tls_peer *peer) {
    SSL_shutdown(peer->tls);
    SSL_free(peer->tls);
    close(peer->socket);
    free(peer);
}
