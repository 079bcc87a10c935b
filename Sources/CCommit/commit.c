#include "CCommit.h"

/* Package.swift defines COMMIT. It is used in this file alone, so that another commit compiles nothing else again. */
#define TEXT(word) #word
#define TEXT_OF(macro) TEXT(macro)

const char *refresh_worker_commit(void) {
    return TEXT_OF(COMMIT);
}
