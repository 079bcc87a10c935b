private import CProcess
package import Crypto
private import Glibc

/// Protects the process's memory, which holds tokens and keys, from core dumps and from other processes.
package enum ProcessHardening {
    /// Forbids core dumps, and debuggers and /proc/PID/mem of other processes of the same user.
    ///
    /// Call it before the first secret is read. The limit alone is not enough: with a pipe in
    /// /proc/sys/kernel/core_pattern the kernel ignores it (https://man7.org/linux/man-pages/man5/core.5.html).
    package static func apply() throws(SystemCallError) {
        var limit = rlimit()
        var none = rlimit(rlim_cur: 0, rlim_max: 0)
        guard unsafe getrlimit(__rlimit_resource_t(RLIMIT_CORE.rawValue), &limit) == 0 else {
            throw SystemCallError(call: "getrlimit(RLIMIT_CORE)", code: errno)
        }
        // A unit's filter of system calls may forbid setting the limit that the unit has already set (LimitCORE=0).
        guard unsafe limit.rlim_max == 0 || setrlimit(__rlimit_resource_t(RLIMIT_CORE.rawValue), &none) == 0 else {
            throw SystemCallError(call: "setrlimit(RLIMIT_CORE)", code: errno)
        }
        guard refresh_worker_forbid_dumps() == 0 else {
            throw SystemCallError(call: "prctl(PR_SET_DUMPABLE)", code: errno)
        }
    }
}
