// The parts of the fault library (LD_PRELOAD) that decide and record; the hooks themselves are in the other files.
//
// Environment:
//   FAULTS_ROOT     the folder whose files are subject to faults; other files are ignored
//   FAULTS_RULES    rules separated by ";", each ACTION:OPERATION/CLASS:WHEN[:ERRNO]
//   FAULTS_SEED     the random seed of rules with a probability
//   FAULTS_CONTROL  a file of 64-bit words that the script shares with the process: the switch and the counters
//   FAULTS_JOURNAL  the file that records every change below FAULTS_ROOT, for the power-cut model
//   FAULTS_BOOT_ID  a file that is read instead of /proc/sys/kernel/random/boot_id
//   FAULTS_CALLER   part of a library's name: only its calls of malloc can fail
//   FAULTS_PARENT   the id of the process that starts this one, and that this one ends with
//   FAULTS_REPORT_CRASHES  if set, a crash prints one line with its place
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum operation {
    OP_OPEN, OP_READ, OP_WRITE, OP_SYNC, OP_TRUNCATE, OP_MMAP, OP_UNLINK, OP_RENAME,
    OP_MALLOC, OP_RESOLVE, OP_CONNECT, OP_SEND, OP_RECEIVE, OPERATIONS
};

// The target of a descriptor. A rule may name one of these, or `*` for all but CLASS_SHM and CLASS_PROC.
enum file_class {
    CLASS_NONE, CLASS_DB, CLASS_WAL, CLASS_SHM, CLASS_JOURNAL, CLASS_LEASE, CLASS_SPILL, CLASS_RESERVE, CLASS_KEYS,
    CLASS_FOLDER, CLASS_OTHER, CLASS_NET, CLASS_PROC, CLASSES
};

// OMIT: the call is not made and reports success, as in a program that lacks the call. Only syncs can be omitted.
enum action { PASS, FAIL, SHORTEN, OMIT };

struct effect {
    enum action action;
    int error;
};

// Decides about one call. A rule that kills does not return.
struct effect decide(enum operation operation, enum file_class class);
bool has_rule_for(enum operation operation);

// The counter that stops every process at a power cut, see rules.c.
void stop_if_power_is_off(void);

enum file_class class_of_path(const char *path);
const char *intern(const char *path);

// The file or socket of a descriptor.
struct target {
    const char *path; // NULL for a socket
    enum file_class class;
};
void remember(int descriptor, const char *path, enum file_class class);
struct target target_of(int descriptor);
void follow_rename(const char *from, const char *to);

// The journal of the power-cut model: one record for each change, in order.
enum record {
    REC_WRITE = 'W', REC_TRUNCATE = 'T', REC_SYNC = 'S', REC_SYNC_FAILED = 'F', REC_CREATE = 'C', REC_LINK = 'L',
    REC_UNLINK = 'U', REC_RENAME = 'R', REC_CUT = 'K'
};
bool keeps_journal(void);
void record(enum record type, const char *path, uint64_t offset, const void *data, size_t length);
