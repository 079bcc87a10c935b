#include <libpq-fe.h>

// The codes of error fields are character macros, which Swift does not import.

static inline const char *cpostgres_state(const PGresult *result) {
    return PQresultErrorField(result, PG_DIAG_SQLSTATE);
}

// These fields are the only ones that do not show stored values
// (https://www.postgresql.org/docs/15/protocol-error-fields.html).

static inline const char *cpostgres_message(const PGresult *result) {
    return PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
}

static inline const char *cpostgres_constraint(const PGresult *result) {
    return PQresultErrorField(result, PG_DIAG_CONSTRAINT_NAME);
}

// libpq prints notices on standard error unless a receiver is set.

static inline void cpostgres_drop_notice(void *context, const PGresult *notice) {
    (void)context;
    (void)notice;
}

static inline void cpostgres_drop_notices(PGconn *connection) {
    PQsetNoticeReceiver(connection, cpostgres_drop_notice, 0);
}
