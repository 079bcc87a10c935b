/* The commit that the program was built from; empty if the build does not know it. */
const char *refresh_worker_commit(void);
