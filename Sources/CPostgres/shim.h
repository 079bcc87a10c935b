#include <libpq-fe.h>
#include <stdbool.h>
#include <string.h>

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

// The warning that a wait for a synchronous standby was cancelled has no SQLSTATE of its own, and its text is
// translated. So it is recognised by the server's function
// (https://github.com/postgres/postgres/blob/REL_15_STABLE/src/backend/replication/syncrep.c).

static inline void cpostgres_take_notice(void *is_unreplicated, const PGresult *notice) {
    const char *function = PQresultErrorField(notice, PG_DIAG_SOURCE_FUNCTION);
    if (function && strcmp(function, "SyncRepWaitForLSN") == 0) *(bool *)is_unreplicated = true;
}

static inline void cpostgres_take_notices(PGconn *connection, bool *is_unreplicated) {
    PQsetNoticeReceiver(connection, cpostgres_take_notice, is_unreplicated);
}
