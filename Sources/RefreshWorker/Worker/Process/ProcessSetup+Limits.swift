import Base
import Glibc

/// The system's limits for this process, checked before anything depends on them.
extension ProcessSetup {
    /// Enough for the database's files, the logs, and the descriptors of Dispatch and libcurl.
    static let filesOfCommand = 48
    /// A daemon also has connections to Google and from its callers.
    static let filesOfDaemon = 192
    /// Stacks and the allocator's arenas are reserved, not used.
    static let addressSpace: UInt = 1 << 30
    /// The threads of Swift's pool, the stores, the HTTP client, the listeners and the look-ups of hosts.
    static let threads = 32

    /// Throws if a limit is too low.
    ///
    /// Dispatch traps without a descriptor, and waits forever without a thread. So the check comes before the first
    /// `await`, while the process has one thread.
    static func checkLimits(forDaemon isDaemon: Bool) throws(CommandError) {
        try checkOpenFiles(isDaemon ? filesOfDaemon : filesOfCommand)
        try checkAddressSpace(RLIMIT_AS, name: "RLIMIT_AS", command: "ulimit -v")
        try checkAddressSpace(RLIMIT_DATA, name: "RLIMIT_DATA", command: "ulimit -d")
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
        name: String,
        command: String
    ) throws(CommandError) {
        var limit = rlimit()
        guard unsafe getrlimit(__rlimit_resource_t(resource.rawValue), &limit) == 0 else { return }
        guard limit.rlim_cur < addressSpace else { return }
        throw CommandError(
            .configuration,
            """
            the limit of address space (\(name)) is \(limit.rlim_cur.inMebibytes), and at least \(addressSpace.inMebibytes) \
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
