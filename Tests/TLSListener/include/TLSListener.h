#include <stddef.h>

// A TLS server over OpenSSL for tests that write HTTP/2 frames, or other bytes, themselves.

typedef struct tls_listener tls_listener;
typedef struct tls_peer tls_peer;

// Makes the server's side of TLS with the PEM files of a certificate and its key. `protocol` is the only one that it
// agrees on, such as "h2". Returns NULL if a file cannot be used.
tls_listener *_Nullable tls_listener_make(
    const char *_Nonnull certificate, const char *_Nonnull key, const char *_Nonnull protocol);

// Makes the handshake on a connected socket, which it owns from then on. Returns NULL if the handshake fails.
tls_peer *_Nullable tls_peer_accept(tls_listener *_Nonnull listener, int socket);

// Returns 1 if the connection resumed an earlier session.
int tls_peer_is_resumed(tls_peer *_Nonnull peer);

// Returns the number of bytes; 0 or less once the client has closed the connection.
int tls_peer_read(tls_peer *_Nonnull peer, void *_Nonnull bytes, int count);

// Returns 1 if all bytes were sent.
int tls_peer_write(tls_peer *_Nonnull peer, const void *_Nonnull bytes, int count);

// Ends the TLS connection and the socket.
void tls_peer_close(tls_peer *_Nonnull peer);
