// A disk that fails on request, as an SQLite VFS, with a model of its content after a power cut.
//
// The model follows ext4 and Linux since 4.13: data reaches the disk only with a successful sync of its file. A failed
// sync drops the dirty pages and marks them as clean: they stay readable until the power is cut, and a later successful
// sync does not write them (https://wiki.postgresql.org/wiki/Fsync_Errors).

#pragma once

/// Makes the VFS SQLite's default. Files outside of the test folder go directly to the unix VFS.
void faulty_disk_install(void);

/// Starts a test in an existing folder, and ends the previous one. The paths of the files must begin with the same
/// text.
void faulty_disk_begin(const char *folder);

/// Makes syncs fail: `first` is the number of syncs that still succeed, `count` the number of failures after them. Only
/// files whose names end in `suffix` count.
void faulty_disk_fail_syncs(const char *suffix, int first, int count);

/// The number of syncs since the test began.
int faulty_disk_syncs(void);

/// Calls `hook` before each write to a file whose name ends in `suffix`; NULL ends that.
void faulty_disk_before_write(const char *suffix, void (*hook)(void *context), void *context);

/// Makes every open of a file in the folder fail with this `errno`; 0 ends that.
void faulty_disk_fail_opens(int error);

/// Makes files whose names end in `suffix` open read-only; NULL ends that.
void faulty_disk_open_read_only(const char *suffix);

/// Makes the next `count` reads of files whose names end in `suffix` return zeros.
void faulty_disk_garble_reads(const char *suffix, int count);

/// Makes reads fail as with EIO: `first` is the number of reads that still succeed, `count` the number of failures
/// after them. Only files whose names end in `suffix` count.
void faulty_disk_fail_reads(const char *suffix, int first, int count);

/// The number of reads that will still fail.
int faulty_disk_failed_reads_left(void);

/// Limits the files of the folder to as much space as they have now, and `more` bytes. Writes that need more fail as on
/// a full disk. A negative number ends that.
void faulty_disk_limit_space(long long more);

/// The number of bytes that are free within that limit.
long long faulty_disk_free_space(void);

/// Cuts the power: writes the content of the disk into another folder. Returns 0 on success.
int faulty_disk_cut_power(const char *destination);

/// Ends the test.
void faulty_disk_end(void);
