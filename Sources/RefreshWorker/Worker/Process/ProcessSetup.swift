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

/// The system's limits for this process, checked before anything depends on them.
extension ProcessSetup {
    /// Enough for the database's files, the logs, and the descriptors of Dispatch and libcurl.
    private static let filesOfCommand = 48
    /// A daemon also has connections to Google and from its callers.
    private static let filesOfDaemon = 192
    /// Stacks and the allocator's arenas are reserved, not used.
    private static let addressSpace: UInt = 1 << 30
    /// The threads of Swift's pool, the stores, the HTTP client, the listeners and the look-ups of hosts.
    private static let threads = 32

    /// Throws if a limit is too low.
    ///
    /// Dispatch traps without a descriptor, and waits forever without a thread. So the check comes before the first
    /// `await`, while the process has one thread.
    static func checkLimits(forDaemon isDaemon: Bool) throws(CommandError) {
        try checkOpenFiles(isDaemon ? filesOfDaemon : filesOfCommand)
        try checkAddressSpace(RLIMIT_AS, "RLIMIT_AS", "ulimit -v")
        try checkAddressSpace(RLIMIT_DATA, "RLIMIT_DATA", "ulimit -d")
        try checkThreads()
    }

    private static func checkOpenFiles(_ needed: Int) throws(CommandError) {
        var limit = rlimit()
        let resource = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
        guard unsafe getrlimit(resource, &limit) == 0 else { return }
        // A process can raise its own soft limit. A filter of system calls might forbid it. The check below decides.
        limit.rlim_cur = limit.rlim_max
        _ = unsafe setrlimit(resource, &limit)
        _ = unsafe getrlimit(resource, &limit)
        let allowed = Int(clamping: limit.rlim_cur)
        // With so many more than needed, the number of inherited descriptors does not matter.
        guard allowed < needed + 4096 else { return }
        let open = (0..<Int32(allowed)).count { fcntl($0, F_GETFD) >= 0 }
        guard allowed - open < needed else { return }
        throw CommandError(
            .configuration,
            """
            the limit of open files (RLIMIT_NOFILE) is \(allowed), of which \(open) are open, and \(needed) more are \
            needed: raise LimitNOFILE= in the unit, or run: ulimit -n 1024
            """
        )
    }

    private static func checkAddressSpace(
        _ resource: __rlimit_resource,
        _ name: String,
        _ command: String
    ) throws(CommandError) {
        var limit = rlimit()
        guard unsafe getrlimit(__rlimit_resource_t(resource.rawValue), &limit) == 0 else { return }
        guard limit.rlim_cur < addressSpace else { return }
        throw CommandError(
            .configuration,
            """
            the limit of address space (\(name)) is \(limit.rlim_cur >> 20) MiB, and at least \(addressSpace >> 20) MiB \
            are needed, most of which is reserved and not used: run: \(command) unlimited, and limit the memory in use \
            by MemoryMax= in the unit
            """
        )
    }

    /// Starts as many threads as might be needed at once, and ends them.
    private static func checkThreads() throws(CommandError) {
        let gate = UnsafeMutablePointer<sem_t>.allocate(capacity: 1)
        defer { unsafe gate.deallocate() }
        guard unsafe sem_init(gate, 0, 0) == 0 else { return }
        defer { unsafe sem_destroy(gate) }
        var started: [pthread_t] = []
        var reason: Int32 = 0
        while started.count < threads, reason == 0 {
            var thread = pthread_t()
            reason = unsafe pthread_create(&thread, nil, waitAtGate, gate)
            if reason == 0 { started.append(thread) }
        }
        for _ in started { unsafe sem_post(gate) }
        for thread in started { pthread_join(thread, nil) }
        guard reason != 0 else { return }
        let text = unsafe String(cString: strerror(reason))
        // The limit includes the user's other processes, which might have ended by the next try.
        throw CommandError(
            .leftForLater,
            """
            only \(started.count) threads can be started (\(text)), and \(threads) are needed: raise LimitNPROC= and \
            TasksMax= in the unit, or ulimit -u
            """
        )
    }
}

private func waitAtGate(_ gate: UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? {
    guard let gate = unsafe gate?.assumingMemoryBound(to: sem_t.self) else { return nil }
    while unsafe sem_wait(gate) != 0, errno == EINTR {}
    return nil
}

/// A user of this machine, as whom a process of root can continue.
struct ServiceUser: Equatable, Sendable {
    let name: String
    private let home: String
    private let id: uid_t
    private let group: gid_t

    static var isRoot: Bool { geteuid() == 0 }

    /// Finds a user by name, and returns `nil` if there is none.
    init?(name: String) throws(SystemCallError) {
        var entry = unsafe passwd()
        var found: UnsafeMutablePointer<passwd>?
        // Longer than any real entry: names, a path and a comment.
        let size = 65_536
        let buffer = UnsafeMutablePointer<CChar>.allocate(capacity: size)
        defer { unsafe buffer.deallocate() }
        let code = unsafe getpwnam_r(name, &entry, buffer, size, &found)
        guard code == 0 else { throw SystemCallError(call: "getpwnam", code: code) }
        guard unsafe found != nil else { return nil }
        self.name = name
        home = unsafe String(cString: entry.pw_dir)
        id = unsafe entry.pw_uid
        group = unsafe entry.pw_gid
    }

    /// Gives up the rights of root for the rest of this process.
    ///
    /// Call it before the first thread is started, because it changes the environment, and before
    /// ``ProcessSetup/forbidDumps()``, which a change of the user undoes.
    func become() throws(SystemCallError) {
        // The groups first: without root's rights they cannot be set.
        guard unsafe initgroups(name, group) == 0 else { throw SystemCallError(call: "initgroups", code: errno) }
        // For root they set the real, effective and saved ids at once.
        guard setgid(group) == 0 else { throw SystemCallError(call: "setgid", code: errno) }
        guard setuid(id) == 0 else { throw SystemCallError(call: "setuid", code: errno) }
        // A process that kept a capability could become root again.
        guard id == 0 || setuid(0) != 0 else { throw SystemCallError(call: "giving up root", code: EPERM) }
        // libpq looks for certificates there. The service has this value from systemd.
        guard unsafe setenv("HOME", home, 1) == 0 else { throw SystemCallError(call: "setenv", code: errno) }
    }
}
