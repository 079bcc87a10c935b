// Decides which calls fail: rules from the environment, and counters and the switch in memory shared with the script.
#define _GNU_SOURCE
#include "shim.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { MOST_RULES = 24, WORDS = 128, WORD_ON = 0, WORD_POWER_OFF = 1, WORD_FIRST_RULE = 4 };

struct rule {
    char action; // 'f'ail, 's'horten, 'o'mit, 'k'ill, 'c'ut
    int operation;
    int class; // CLASS_NONE stands for any
    uint64_t from, to; // counted from 1
    double chance;
    int error;
};

static struct rule rules[MOST_RULES];
static int rule_count;
static uint32_t operations_in_use;
static uint64_t seed;
static uint64_t private_words[WORDS];
static uint64_t *words = private_words;

static const char *const operation_names[OPERATIONS] = {
    "open", "read", "write", "sync", "truncate", "mmap", "unlink", "rename",
    "malloc", "resolve", "connect", "send", "receive",
};
static const char *const class_names[CLASSES] = {
    "*", "db", "wal", "shm", "journal", "lease", "spill", "reserve", "keys", "folder", "other", "net",
    "proc",
};

static int index_of(const char *name, size_t length, const char *const *names, int count) {
    for (int i = 0; i < count; i++)
        if (strlen(names[i]) == length && memcmp(names[i], name, length) == 0) return i;
    return -1;
}

static void refuse(const char *rule) {
    // A misspelled rule must not result in a run without faults.
    static const char text[] = "faults: cannot read this rule: ";
    ssize_t ignored = syscall(SYS_write, 2, text, sizeof text - 1);
    ignored = syscall(SYS_write, 2, rule, strlen(rule));
    ignored = syscall(SYS_write, 2, "\n", 1);
    (void)ignored;
    _exit(99);
}

// ACTION:OPERATION/CLASS:WHEN[:ERRNO], where WHEN is n=K (the K-th call), n=K+ (all from the K-th on) or p=CHANCE.
static void add(const char *text) {
    struct rule rule = {.error = EIO, .to = UINT64_MAX, .from = 1, .chance = 1};
    const char *colon = strchr(text, ':');
    if (!colon || rule_count == MOST_RULES) refuse(text);
    rule.action = text[0];
    if (!strchr("fsokc", rule.action)) refuse(text);
    const char *slash = strchr(colon, '/');
    const char *second = slash ? strchr(slash, ':') : NULL;
    if (!second) refuse(text);
    rule.operation = index_of(colon + 1, (size_t)(slash - colon - 1), operation_names, OPERATIONS);
    rule.class = index_of(slash + 1, (size_t)(second - slash - 1), class_names, CLASSES);
    if (rule.operation < 0 || rule.class < 0) refuse(text);
    if (rule.action == 'o' && rule.operation != OP_SYNC) refuse(text);
    char *end = NULL;
    if (strncmp(second, ":n=", 3) == 0) {
        rule.from = strtoull(second + 3, &end, 10);
        if (*end == '+') end++;
        else rule.to = rule.from;
    } else if (strncmp(second, ":p=", 3) == 0) {
        rule.chance = strtod(second + 3, &end);
    } else {
        refuse(text);
    }
    if (*end == ':') rule.error = (int)strtol(end + 1, &end, 10);
    if (*end) refuse(text);
    operations_in_use |= 1u << rule.operation;
    rules[rule_count++] = rule;
}

__attribute__((constructor(101))) static void read_rules(void) {
    const char *number = getenv("FAULTS_SEED");
    if (number) seed = strtoull(number, NULL, 10);
    const char *path = getenv("FAULTS_CONTROL");
    if (path) {
        int file = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC);
        void *shared = file < 0 ? MAP_FAILED
            : (void *)syscall(SYS_mmap, NULL, sizeof private_words, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
        if (shared == MAP_FAILED) refuse(path);
        syscall(SYS_close, file);
        words = shared;
    } else {
        words[WORD_ON] = 1;
    }
    char text[2048];
    const char *all = getenv("FAULTS_RULES");
    if (!all) return;
    if (strlen(all) >= sizeof text) refuse(all);
    strcpy(text, all);
    for (char *rest = text, *one; (one = strsep(&rest, ";"));)
        if (*one) add(one);
}

// splitmix64: the same call of the same rule gets the same random number, whichever thread makes it.
static double chance_of(uint64_t rule, uint64_t count) {
    uint64_t x = seed * 0x9E3779B97F4A7C15u + (rule << 48) + count;
    x += 0x9E3779B97F4A7C15u;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
    x ^= x >> 31;
    return (double)(x >> 11) * 0x1p-53;
}

static void end_here(void) {
    syscall(SYS_kill, getpid(), SIGKILL);
    for (;;) syscall(SYS_pause);
}

void stop_if_power_is_off(void) {
    // A cut also stops the other processes: the script kills them, and until then they must not change anything.
    while (__atomic_load_n(&words[WORD_POWER_OFF], __ATOMIC_ACQUIRE)) syscall(SYS_pause);
}

bool has_rule_for(enum operation operation) {
    return operations_in_use & 1u << operation;
}

struct effect decide(enum operation operation, enum file_class class) {
    struct effect effect = {PASS, 0};
    stop_if_power_is_off();
    if (!has_rule_for(operation) || class == CLASS_NONE) return effect;
    if (!__atomic_load_n(&words[WORD_ON], __ATOMIC_ACQUIRE)) return effect;
    for (int i = 0; i < rule_count; i++) {
        const struct rule *rule = &rules[i];
        if (rule->operation != (int)operation) continue;
        if (rule->class == CLASS_NONE ? class == CLASS_SHM || class == CLASS_PROC : rule->class != (int)class) continue;
        uint64_t *seen = &words[WORD_FIRST_RULE + 2 * i];
        uint64_t count = __atomic_add_fetch(seen, 1, __ATOMIC_ACQ_REL);
        if (count < rule->from || count > rule->to) continue;
        if (rule->chance < 1 && chance_of((uint64_t)i, count) >= rule->chance) continue;
        __atomic_add_fetch(seen + 1, 1, __ATOMIC_ACQ_REL);
        if (rule->action == 'k') end_here();
        if (rule->action == 'c') {
            __atomic_store_n(&words[WORD_POWER_OFF], 1, __ATOMIC_RELEASE);
            record(REC_CUT, "", 0, NULL, 0);
            end_here();
        }
        enum action action = rule->action == 's' ? SHORTEN : rule->action == 'o' ? OMIT : FAIL;
        if (effect.action == PASS) effect = (struct effect){action, rule->error};
    }
    return effect;
}
