#include <microhttpd.h>

/* Swift cannot call variadic C functions, which libmicrohttpd uses to start a daemon and to query a connection. The
   callbacks are passed here, so that the compiler checks their types; the options are an array (MHD_OPTION_ARRAY). */
static inline struct MHD_Daemon *
shim_start_daemon(unsigned int flags, MHD_AcceptPolicyCallback admits, MHD_AccessHandlerCallback access,
                  void *(*request_line)(void *, const char *, struct MHD_Connection *),
                  MHD_RequestCompletedCallback completed, MHD_NotifyConnectionCallback connection_changed, void *context,
                  struct MHD_OptionItem *options)
{
    return MHD_start_daemon(flags, 0, admits, context, access, context, MHD_OPTION_URI_LOG_CALLBACK, request_line,
                            context, MHD_OPTION_NOTIFY_COMPLETED, completed, context, MHD_OPTION_NOTIFY_CONNECTION,
                            connection_changed, context, MHD_OPTION_ARRAY, options, MHD_OPTION_END);
}

static inline int shim_connection_socket(struct MHD_Connection *connection)
{
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    return info == NULL ? -1 : info->connect_fd;
}

static inline const struct sockaddr *shim_connection_peer(struct MHD_Connection *connection)
{
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    return info == NULL ? NULL : info->client_addr;
}

/* Returns the GnuTLS session of a TLS connection; NULL without TLS. */
static inline void *shim_connection_tls_session(struct MHD_Connection *connection)
{
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_GNUTLS_SESSION);
    return info == NULL ? NULL : info->tls_session;
}

static inline void *shim_connection_context(struct MHD_Connection *connection)
{
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    return info == NULL ? NULL : info->socket_context;
}

static inline size_t shim_request_head_size(struct MHD_Connection *connection)
{
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);
    return info == NULL ? 0 : info->header_size;
}
