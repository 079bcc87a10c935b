// The floor: what same_work.go does, in C on one thread, with the worker's libraries. What the worker costs above it is
// its own. It ends with an error at anything unexpected. same_work_store.py writes its database and checks it afterwards.
//
//     floor --once --database FILE --key FILE --url URL --ca-file FILE [--version h2]
//
// All programs of the same work take --once and --version.
#define _GNU_SOURCE
#include <ctype.h>
#include <getopt.h>
#include <inttypes.h>
#include <nghttp2/nghttp2.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/http.h>
#include <openssl/rand.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    maximum_in_flight = 64,
    batch_size = 100,
    // Requests are in flight while a batch is stored. With more claims, a lease might end while its grant waits.
    maximum_claimed = 2 * batch_size,
    maximum_refresh_token = 512,
    maximum_access_token = 2048,
    maximum_body = 8192,
};

// In milliseconds.
enum {
    lease_span = 30 * 1000,
    response_deadline = 15 * 1000,
    refresh_margin = 10 * 60 * 1000, // A token is replaced this long before it expires.
    refresh_spread = 60 * 1000,      // Grants that were connected together do not stay together.
};

struct text {
    const char *bytes;
    size_t length;
};

// A nonce, the encrypted token and its tag.
enum { nonce_size = 12, tag_size = 16, seal_overhead = nonce_size + tag_size };
struct sealed {
    unsigned char bytes[maximum_access_token + seal_overhead];
    size_t length;
};

// A claimed grant, until its refresh is stored.
struct grant {
    struct grant *next;
    int64_t id, due_at, attempts;
    int64_t lease_until; // Also names the claim.
    struct sealed refresh_token;

    char form[64 + 3 * maximum_refresh_token];
    size_t form_length, form_sent;
    int64_t sent_at;

    bool is_success;
    char body[maximum_body + 1];
    size_t body_length;
    int64_t latency, expires_at;
    struct text scope; // Part of the response.
    struct sealed access_token;
    bool is_stored;
};

static void require(bool holds, const char *what)
{
    if (holds) return;
    fprintf(stderr, "floor: could not %s\n", what);
    exit(1);
}

static int64_t now(void)
{
    struct timespec time;
    require(clock_gettime(CLOCK_REALTIME, &time) == 0, "read the clock");
    return (int64_t)time.tv_sec * 1000 + time.tv_nsec / 1000000;
}

// MARK: Queues of grants

struct queue {
    struct grant *first, *last;
    int count;
};

static struct grant grants[maximum_claimed];
static struct queue unused, waiting, received;

static void push(struct queue *queue, struct grant *grant)
{
    grant->next = NULL;
    if (queue->last) queue->last->next = grant;
    else queue->first = grant;
    queue->last = grant;
    queue->count++;
}

static struct grant *pop(struct queue *queue)
{
    struct grant *grant = queue->first;
    require(grant != NULL, "take a grant from a queue");
    queue->first = grant->next;
    if (!queue->first) queue->last = NULL;
    queue->count--;
    return grant;
}

static int claimed(void) { return maximum_claimed - unused.count; }
static int in_flight(void) { return claimed() - waiting.count - received.count; }

// MARK: Sealed tokens

static EVP_CIPHER_CTX *sealing, *opening;

static void prepare_cipher(const char *key_file)
{
    unsigned char key[32];
    char digits[2 * sizeof key + 2];
    FILE *file = fopen(key_file, "r");
    require(file && fgets(digits, sizeof digits, file) && fclose(file) == 0, "read the key");
    digits[strcspn(digits, "\n")] = 0;
    size_t length = 0;
    bool is_decoded = OPENSSL_hexstr2buf_ex(key, sizeof key, &length, digits, 0) == 1;
    require(is_decoded && length == sizeof key, "decode the key");
    sealing = EVP_CIPHER_CTX_new();
    opening = EVP_CIPHER_CTX_new();
    require(sealing && EVP_EncryptInit_ex(sealing, EVP_aes_256_gcm(), NULL, key, NULL) == 1, "prepare sealing");
    require(opening && EVP_DecryptInit_ex(opening, EVP_aes_256_gcm(), NULL, key, NULL) == 1, "prepare opening");
}

// A sealed token opens only for its row and column.
struct associated_data {
    unsigned char bytes[48];
    int length;
};

static struct associated_data associated_data_of(const char *column, int64_t id)
{
    struct associated_data data;
    data.length = snprintf((char *)data.bytes, sizeof data.bytes, "%s:%" PRId64, column, id);
    return data;
}

static void seal_access_token(struct grant *grant, struct text token)
{
    require(token.length > 0 && token.length <= maximum_access_token, "seal a token of this length");
    struct associated_data row = associated_data_of("access_token", grant->id);
    unsigned char *nonce = grant->access_token.bytes, *content = nonce + nonce_size, *tag = content + token.length;
    const unsigned char *bytes = (const unsigned char *)token.bytes;
    int length = 0;
    require(RAND_bytes(nonce, nonce_size) == 1
                && EVP_EncryptInit_ex(sealing, NULL, NULL, NULL, nonce) == 1
                && EVP_EncryptUpdate(sealing, NULL, &length, row.bytes, row.length) == 1
                && EVP_EncryptUpdate(sealing, content, &length, bytes, (int)token.length) == 1
                && EVP_EncryptFinal_ex(sealing, content + length, &length) == 1
                && EVP_CIPHER_CTX_ctrl(sealing, EVP_CTRL_AEAD_GET_TAG, tag_size, tag) == 1,
            "seal a token");
    grant->access_token.length = token.length + seal_overhead;
}

// Writes the token into the buffer, and returns its length.
static size_t open_refresh_token(struct grant *grant, unsigned char token[maximum_refresh_token])
{
    struct sealed *sealed = &grant->refresh_token;
    bool is_possible = sealed->length > seal_overhead && sealed->length <= maximum_refresh_token + seal_overhead;
    require(is_possible, "open a token of this length");
    size_t size = sealed->length - seal_overhead;
    struct associated_data row = associated_data_of("refresh_token", grant->id);
    unsigned char *nonce = sealed->bytes, *content = nonce + nonce_size, *tag = content + size;
    int length = 0;
    require(EVP_DecryptInit_ex(opening, NULL, NULL, NULL, nonce) == 1
                && EVP_DecryptUpdate(opening, NULL, &length, row.bytes, row.length) == 1
                && EVP_DecryptUpdate(opening, token, &length, content, (int)size) == 1
                && EVP_CIPHER_CTX_ctrl(opening, EVP_CTRL_AEAD_SET_TAG, tag_size, tag) == 1
                && EVP_DecryptFinal_ex(opening, token + length, &length) == 1,
            "open a token");
    return size;
}

// MARK: The store

static sqlite3 *database;
static sqlite3_stmt *claim_due, *begin, *store_success, *commit;

static void require_stored(bool holds)
{
    if (holds) return;
    fprintf(stderr, "floor: SQLite: %s\n", sqlite3_errmsg(database));
    exit(1);
}

static sqlite3_stmt *prepare(const char *sql)
{
    sqlite3_stmt *statement = NULL;
    int result = sqlite3_prepare_v3(database, sql, -1, SQLITE_PREPARE_PERSISTENT, &statement, NULL);
    require_stored(result == SQLITE_OK);
    return statement;
}

static void open_store(const char *file)
{
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX;
    require(sqlite3_open_v2(file, &database, flags, NULL) == SQLITE_OK, "open the database");
    const char *settings = "PRAGMA busy_timeout = 5000; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL";
    require_stored(sqlite3_exec(database, settings, NULL, NULL, NULL) == SQLITE_OK);
    claim_due = prepare("UPDATE grants SET lease_until = ?1 WHERE id IN ("
                        "SELECT id FROM grants WHERE due_at <= ?2 AND lease_until <= ?2 ORDER BY due_at LIMIT ?3)"
                        " RETURNING id, due_at, attempts, refresh_token");
    store_success = prepare("UPDATE grants SET state = 'active', access_token = ?1, scope = ?2, expires_at = ?3,"
                            " due_at = ?4, refreshed_at = ?5, attempts = 0, error = NULL, lease_until = 0"
                            " WHERE id = ?6 AND lease_until = ?7");
    begin = prepare("BEGIN IMMEDIATE");
    commit = prepare("COMMIT");
}

static void close_store(void)
{
    sqlite3_finalize(claim_due);
    sqlite3_finalize(store_success);
    sqlite3_finalize(begin);
    sqlite3_finalize(commit);
    require(sqlite3_close(database) == SQLITE_OK, "close the database");
}

static void run(sqlite3_stmt *statement)
{
    require_stored(sqlite3_step(statement) == SQLITE_DONE);
    require_stored(sqlite3_reset(statement) == SQLITE_OK);
}

static void take_claimed_row(int64_t lease_until)
{
    struct grant *grant = pop(&unused);
    grant->id = sqlite3_column_int64(claim_due, 0);
    grant->due_at = sqlite3_column_int64(claim_due, 1);
    grant->attempts = sqlite3_column_int64(claim_due, 2);
    grant->lease_until = lease_until;
    const void *token = sqlite3_column_blob(claim_due, 3);
    size_t length = (size_t)sqlite3_column_bytes(claim_due, 3);
    require(token && length <= sizeof grant->refresh_token.bytes, "read a sealed token");
    memcpy(grant->refresh_token.bytes, token, length);
    grant->refresh_token.length = length;
    push(&waiting, grant);
}

// Writes leases on the grants that are due first, and returns their number.
static int claim(void)
{
    int64_t time = now(), lease_until = time + lease_span;
    require_stored(sqlite3_bind_int64(claim_due, 1, lease_until) == SQLITE_OK
                   && sqlite3_bind_int64(claim_due, 2, time) == SQLITE_OK
                   && sqlite3_bind_int(claim_due, 3, batch_size) == SQLITE_OK);
    int count = 0, result;
    while ((result = sqlite3_step(claim_due)) == SQLITE_ROW) {
        take_claimed_row(lease_until);
        count++;
    }
    require_stored(result == SQLITE_DONE && sqlite3_reset(claim_due) == SQLITE_OK);
    return count;
}

// A response counts only while the lease of its claim is stored.
static void store(struct grant *grant, int64_t time)
{
    const struct sealed *token = &grant->access_token;
    const struct text scope = grant->scope;
    int64_t due_at = grant->expires_at - refresh_margin - random() % refresh_spread;
    require_stored(sqlite3_bind_blob(store_success, 1, token->bytes, (int)token->length, SQLITE_STATIC) == SQLITE_OK
                   && sqlite3_bind_text(store_success, 2, scope.bytes, (int)scope.length, SQLITE_STATIC) == SQLITE_OK
                   && sqlite3_bind_int64(store_success, 3, grant->expires_at) == SQLITE_OK
                   && sqlite3_bind_int64(store_success, 4, due_at) == SQLITE_OK
                   && sqlite3_bind_int64(store_success, 5, time) == SQLITE_OK
                   && sqlite3_bind_int64(store_success, 6, grant->id) == SQLITE_OK
                   && sqlite3_bind_int64(store_success, 7, grant->lease_until) == SQLITE_OK);
    run(store_success);
    grant->is_stored = sqlite3_changes(database) == 1;
}

static void report(const struct grant *grant, const char *instant, int64_t time)
{
    const char *outcome = grant->is_stored ? "refreshed" : "lost_lease";
    int64_t lateness = time - grant->due_at - grant->latency;
    printf("{\"time\":\"%s\",\"event\":\"refresh\",\"grant\":%" PRId64 ",\"outcome\":\"%s\",\"attempt\":%" PRId64
           ",\"lateness_ms\":%" PRId64 ",\"latency_ms\":%" PRId64 ",\"rotated\":false,\"expires_at\":%" PRId64 "}\n",
           instant, grant->id, outcome, grant->attempts + 1, lateness, grant->latency, grant->expires_at);
}

// Stores a batch durably, and only then reports it.
static void commit_batch(void)
{
    int count = received.count < batch_size ? received.count : batch_size;
    int64_t time = now();
    struct grant *grant = received.first;
    run(begin);
    for (int at = 0; at < count; at++, grant = grant->next) store(grant, time);
    run(commit);

    char second[32], instant[48];
    time_t seconds = time / 1000;
    struct tm parts;
    require(gmtime_r(&seconds, &parts) && strftime(second, sizeof second, "%FT%T", &parts) > 0, "format the time");
    snprintf(instant, sizeof instant, "%s.%03dZ", second, (int)(time % 1000));
    for (int at = 0; at < count; at++) {
        grant = pop(&received);
        report(grant, instant, time);
        push(&unused, grant);
    }
    require(fflush(stdout) == 0 && !ferror(stdout), "write the log");
}

// MARK: Responses: a JSON object whose values are strings without escapes, and integers

struct response {
    struct text access_token, scope;
    int64_t expires_in;
};

static void skip_blanks(const char **at) { *at += strspn(*at, " \t\r\n"); }

static bool skip(const char **at, char expected)
{
    skip_blanks(at);
    if (**at != expected) return false;
    ++*at;
    return true;
}

static struct text read_string(const char **at)
{
    require(skip(at, '"'), "find a string in a response");
    struct text text = {*at, 0};
    while ((unsigned char)**at >= ' ' && **at != '"' && **at != '\\') ++*at;
    text.length = (size_t)(*at - text.bytes);
    require(**at == '"', "read a string in a response");
    ++*at;
    return text;
}

static int64_t read_integer(const char **at)
{
    size_t digits = strspn(*at, "0123456789");
    bool has_leading_zero = digits > 1 && **at == '0';
    require(digits > 0 && digits < 10 && !has_leading_zero, "read a number in a response");
    int64_t value = strtoll(*at, NULL, 10);
    *at += digits;
    return value;
}

static bool equals(struct text text, const char *other)
{
    return text.length == strlen(other) && memcmp(text.bytes, other, text.length) == 0;
}

static void read_member(const char **at, struct response *response)
{
    struct text name = read_string(at);
    require(skip(at, ':'), "find a colon in a response");
    skip_blanks(at);
    if (**at != '"') {
        int64_t value = read_integer(at);
        if (equals(name, "expires_in")) response->expires_in = value;
        return;
    }
    struct text value = read_string(at);
    if (equals(name, "access_token")) response->access_token = value;
    if (equals(name, "scope")) response->scope = value;
    require(!equals(name, "refresh_token"), "accept a response with a new refresh token");
}

static struct response read_response(const char *body, size_t length)
{
    struct response response = {0};
    const char *at = body;
    require(skip(&at, '{'), "find an object in a response");
    do read_member(&at, &response);
    while (skip(&at, ','));
    require(skip(&at, '}'), "find the end of an object in a response");
    skip_blanks(&at);
    require(at == body + length, "find nothing after the object in a response");
    require(response.access_token.length > 0 && response.scope.length > 0 && response.expires_in > 0,
            "find access_token, scope and expires_in in a response");
    return response;
}

// MARK: Requests

static nghttp2_session *session;
static const char *authority, *path;

// Writes the text as a form spells it, and returns its length, which is at most three times as long.
static size_t encode(char *form, const unsigned char *text, size_t text_length)
{
    size_t length = 0;
    for (size_t at = 0; at < text_length; at++) {
        if (isalnum(text[at]) || (text[at] != 0 && strchr("-._~", text[at]))) form[length++] = (char)text[at];
        else length += (size_t)sprintf(form + length, "%%%02X", text[at]);
    }
    return length;
}

static nghttp2_nv field(const char *name, const char *value)
{
    return (nghttp2_nv){(uint8_t *)name, (uint8_t *)value, strlen(name), strlen(value), NGHTTP2_NV_FLAG_NONE};
}

static ssize_t give_form(nghttp2_session *of, int32_t stream, uint8_t *bytes, size_t room, uint32_t *flags,
                         nghttp2_data_source *source, void *context)
{
    (void)of, (void)stream, (void)context;
    struct grant *grant = source->ptr;
    size_t rest = grant->form_length - grant->form_sent;
    size_t length = rest < room ? rest : room;
    memcpy(bytes, grant->form + grant->form_sent, length);
    grant->form_sent += length;
    if (length == rest) *flags |= NGHTTP2_DATA_FLAG_EOF;
    return (ssize_t)length;
}

static void submit(struct grant *grant)
{
    static const char start[] = "client_id=bench&grant_type=refresh_token&refresh_token=";
    const size_t start_length = sizeof start - 1;
    unsigned char token[maximum_refresh_token];
    size_t token_length = open_refresh_token(grant, token);
    memcpy(grant->form, start, start_length);
    grant->form_length = start_length + encode(grant->form + start_length, token, token_length);
    grant->form_sent = 0;
    grant->body_length = 0;
    grant->is_success = false;
    grant->sent_at = now();

    char form_length[24];
    snprintf(form_length, sizeof form_length, "%zu", grant->form_length);
    const nghttp2_nv fields[] = {
        field(":method", "POST"),
        field(":path", path),
        field(":scheme", "https"),
        field(":authority", authority),
        field("accept", "*/*"),
        field("content-type", "application/x-www-form-urlencoded"),
        field("content-length", form_length),
    };
    const nghttp2_data_provider form = {{.ptr = grant}, give_form};
    int32_t stream = nghttp2_submit_request(session, NULL, fields, sizeof fields / sizeof *fields, &form, grant);
    require(stream > 0, "submit a request");
}

static int take_header(nghttp2_session *of, const nghttp2_frame *frame, const uint8_t *name, size_t name_length,
                       const uint8_t *value, size_t value_length, uint8_t flags, void *context)
{
    (void)flags, (void)context;
    struct grant *grant = nghttp2_session_get_stream_user_data(of, frame->hd.stream_id);
    struct text header = {(const char *)name, name_length}, status = {(const char *)value, value_length};
    if (grant && equals(header, ":status")) grant->is_success = equals(status, "200");
    return 0;
}

static int take_body(nghttp2_session *of, uint8_t flags, int32_t stream, const uint8_t *bytes, size_t length,
                     void *context)
{
    (void)flags, (void)context;
    struct grant *grant = nghttp2_session_get_stream_user_data(of, stream);
    require(grant && length <= maximum_body - grant->body_length, "take a body of this length");
    memcpy(grant->body + grant->body_length, bytes, length);
    grant->body_length += length;
    return 0;
}

static int end_request(nghttp2_session *of, int32_t stream, uint32_t error, void *context)
{
    (void)context;
    struct grant *grant = nghttp2_session_get_stream_user_data(of, stream);
    require(grant && error == NGHTTP2_NO_ERROR && grant->is_success, "get a success as a response");
    grant->body[grant->body_length] = 0;
    struct response response = read_response(grant->body, grant->body_length);
    int64_t time = now();
    grant->latency = time - grant->sent_at;
    grant->expires_at = time + response.expires_in * 1000;
    grant->scope = response.scope;
    seal_access_token(grant, response.access_token);
    push(&received, grant);
    return 0;
}

// MARK: The connection

static SSL *tls;
static uint8_t output[16384]; // One TLS record for many frames.
static size_t output_length;

static ssize_t take_output(nghttp2_session *of, const uint8_t *bytes, size_t length, int flags, void *context)
{
    (void)of, (void)flags, (void)context;
    size_t room = sizeof output - output_length;
    if (room == 0) return NGHTTP2_ERR_WOULDBLOCK;
    if (length > room) length = room;
    memcpy(output + output_length, bytes, length);
    output_length += length;
    return (ssize_t)length;
}

// Anything but a socket that is not ready is an error.
static void require_only_not_ready(int result)
{
    int error = SSL_get_error(tls, result);
    require(error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE, "keep the connection");
}

static void send_output(void)
{
    for (;;) {
        require(nghttp2_session_send(session) == 0, "make frames of requests");
        if (output_length == 0) return;
        int sent = SSL_write(tls, output, (int)output_length);
        if (sent <= 0) {
            require_only_not_ready(sent);
            return;
        }
        output_length -= (size_t)sent;
        memmove(output, output + sent, output_length);
    }
}

static void receive_input(void)
{
    uint8_t input[16384];
    for (;;) {
        int length = SSL_read(tls, input, sizeof input);
        if (length <= 0) {
            require_only_not_ready(length);
            return;
        }
        require(nghttp2_session_mem_recv(session, input, (size_t)length) == length, "read the server's frames");
    }
}

// Sends what can be sent, waits for the server and takes what it has sent.
static void exchange(void)
{
    send_output();
    struct pollfd socket = {SSL_get_fd(tls), POLLIN, 0};
    if (output_length > 0) socket.events |= POLLOUT;
    require(poll(&socket, 1, response_deadline) > 0, "get a response in time");
    receive_input();
}

static void open_tls(const char *host, const char *ca_file)
{
    static const unsigned char protocol[] = "\2h2";
    SSL_CTX *context = SSL_CTX_new(TLS_client_method());
    require(context && SSL_CTX_load_verify_file(context, ca_file) == 1, "read the certificate authority");
    SSL_CTX_set_verify(context, SSL_VERIFY_PEER, NULL);
    // A write that is repeated can come from a buffer that has grown since.
    SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    require(SSL_CTX_set_alpn_protos(context, protocol, sizeof protocol - 1) == 0, "offer HTTP/2");
    tls = SSL_new(context);
    require(tls && SSL_set_tlsext_host_name(tls, host) == 1 && SSL_set1_host(tls, host) == 1, "name the server");
    SSL_CTX_free(context);
}

static void connect_to_server(void)
{
    BIO *socket = BIO_new_connect(authority);
    require(socket && BIO_set_conn_mode(socket, BIO_SOCK_NODELAY) == 1 && BIO_do_connect(socket) == 1, "connect");
    // One call of the system reads all that has arrived, instead of two for each record.
    BIO *buffer = BIO_new(BIO_f_buffer());
    require(buffer && BIO_set_read_buffer_size(buffer, 65536) == 1 && BIO_up_ref(socket) == 1, "buffer the input");
    SSL_set_bio(tls, BIO_push(buffer, socket), socket);
    require(SSL_connect(tls) == 1, "make a TLS handshake");
    const unsigned char *chosen = NULL;
    unsigned length = 0;
    SSL_get0_alpn_selected(tls, &chosen, &length);
    require(length == 2 && memcmp(chosen, "h2", 2) == 0, "agree on HTTP/2");
    require(BIO_socket_nbio(SSL_get_fd(tls), 1) == 1, "stop the socket from blocking");
    // SSL_get_error would take an old error for a new one.
    ERR_clear_error();
}

static void open_session(void)
{
    nghttp2_session_callbacks *callbacks = NULL;
    require(nghttp2_session_callbacks_new(&callbacks) == 0, "prepare HTTP/2");
    nghttp2_session_callbacks_set_send_callback(callbacks, take_output);
    nghttp2_session_callbacks_set_on_header_callback(callbacks, take_header);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, take_body);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, end_request);
    require(nghttp2_session_client_new(&session, callbacks, NULL) == 0, "begin HTTP/2");
    nghttp2_session_callbacks_del(callbacks);
    const nghttp2_settings_entry no_push = {NGHTTP2_SETTINGS_ENABLE_PUSH, 0};
    require(nghttp2_submit_settings(session, NGHTTP2_FLAG_NONE, &no_push, 1) == 0, "send settings");
    // As large as the worker's, so that the server seldom waits for an update.
    const int32_t window = 16 * 1024 * 1024;
    require(nghttp2_session_set_local_window_size(session, NGHTTP2_FLAG_NONE, 0, window) == 0, "open the window");
}

static void open_connection(const char *url, const char *ca_file)
{
    static char host_and_port[300];
    int is_tls = 0;
    char *host = NULL, *port = NULL, *url_path = NULL;
    bool is_url = OSSL_HTTP_parse_url(url, &is_tls, NULL, &host, &port, NULL, &url_path, NULL, NULL) == 1;
    require(is_url && is_tls, "read the URL, which begins with https://");
    int length = snprintf(host_and_port, sizeof host_and_port, "%s:%s", host, port);
    require(length > 0 && length < (int)sizeof host_and_port, "read a URL of this length");
    authority = host_and_port;
    path = url_path;
    open_tls(host, ca_file);
    connect_to_server();
    open_session();
    OPENSSL_free(host);
    OPENSSL_free(port);
}

// MARK: The program

static void refresh_due_grants(void)
{
    for (int at = 0; at < maximum_claimed; at++) push(&unused, &grants[at]);
    for (;;) {
        bool is_more_due = true;
        while (is_more_due && claimed() <= batch_size) is_more_due = claim() == batch_size;
        if (claimed() == 0) return;
        while (received.count < batch_size && received.count < claimed()) {
            while (waiting.count > 0 && in_flight() < maximum_in_flight) submit(pop(&waiting));
            exchange();
        }
        commit_batch();
    }
}

int main(int count, char **words)
{
    enum { once, database_file, key_file, url, ca_file, version, option_count };
    static const struct option options[] = {
        {"once", no_argument, NULL, once},
        {"database", required_argument, NULL, database_file},
        {"key", required_argument, NULL, key_file},
        {"url", required_argument, NULL, url},
        {"ca-file", required_argument, NULL, ca_file},
        {"version", required_argument, NULL, version},
        {0},
    };
    const char *values[option_count] = {[version] = "h2"};
    int option;
    while ((option = getopt_long(count, words, "", options, NULL)) != -1) {
        require(option >= 0 && option < option_count, "read the options");
        values[option] = option == once ? "" : optarg;
    }
    bool is_complete = values[once] && values[database_file] && values[key_file] && values[url] && values[ca_file];
    require(optind == count && is_complete, "find --once, --database, --key, --url and --ca-file, and no other words");
    require(strcmp(values[version], "h2") == 0, "use this version of HTTP: there is only h2");

    // A broken connection is an error of the next write.
    signal(SIGPIPE, SIG_IGN);
    srandom((unsigned)now());
    open_store(values[database_file]);
    prepare_cipher(values[key_file]);
    open_connection(values[url], values[ca_file]);
    refresh_due_grants();
    close_store();
}
