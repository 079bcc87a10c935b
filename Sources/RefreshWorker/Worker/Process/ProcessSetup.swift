import Base
import CProcess
import Glibc

/// What this process does before anything else: it opens its standard descriptors, checks the system's limits, and
/// protects its memory.
enum ProcessSetup {
    static var id: Int32 { getpid() }

    /// The environment variables by name.
    ///
    /// The environment changes only before the first thread, so this can be read at any time. A variable that is not
    /// UTF-8 is repaired and not dropped, so that a check of its value finds it.
    static var environment: [String: String] {
        var variables: [String: String] = [:]
        guard var entry = unsafe refresh_worker_environment() else { return variables }
        while let text = unsafe entry.pointee {
            let parts = unsafe String(cString: text).split(
                separator: "=",
                maxSplits: 1,
                omittingEmptySubsequences: false
            )
            if parts.count == 2 { variables[String(parts[0])] = String(parts[1]) }
            unsafe entry += 1
        }
        return variables
    }

    /// Opens /dev/null for each of the three descriptors that every program expects to be open and that is closed.
    ///
    /// Otherwise the next file or socket would get the number, and messages for standard error would be written into
    /// it. Input cannot be read and output cannot be written: a token written to /dev/null must not look delivered.
    /// Standard error accepts everything, so that a failure keeps its exit code.
    static func openStandardDescriptors() {
        for descriptor in STDIN_FILENO...STDERR_FILENO where fcntl(descriptor, F_GETFD) < 0 {
            let flags =
                switch descriptor {
                case STDIN_FILENO: O_WRONLY
                case STDOUT_FILENO: O_RDONLY
                default: O_RDWR
                }
            // All lower numbers are open, so the lowest free number is the missing one.
            guard unsafe open("/dev/null", flags) == descriptor else { exit(ExitCode.internalFailure.rawValue) }
        }
    }

    /// Protects the memory, which holds tokens and keys: forbids core dumps, and debuggers and /proc/PID/mem of other
    /// processes of the same user.
    ///
    /// Call it before the first secret is read. The limit alone is not enough: with a pipe in
    /// /proc/sys/kernel/core_pattern the kernel ignores it (https://man7.org/linux/man-pages/man5/core.5.html).
    static func forbidDumps() throws(SystemCallError) {
        var limit = rlimit()
        var none = rlimit(rlim_cur: 0, rlim_max: 0)
        guard unsafe getrlimit(__rlimit_resource_t(RLIMIT_CORE.rawValue), &limit) == 0 else {
            throw SystemCallError(call: "getrlimit(RLIMIT_CORE)", code: errno)
        }
        // A unit's filter of system calls might forbid setting the limit that the unit has already set (LimitCORE=0).
        guard unsafe limit.rlim_max == 0 || setrlimit(__rlimit_resource_t(RLIMIT_CORE.rawValue), &none) == 0 else {
            throw SystemCallError(call: "setrlimit(RLIMIT_CORE)", code: errno)
        }
        guard refresh_worker_forbid_dumps() == 0 else {
            throw SystemCallError(call: "prctl(PR_SET_DUMPABLE)", code: errno)
        }
    }
}
