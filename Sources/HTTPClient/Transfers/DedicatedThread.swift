import Base
private import Glibc
private import Synchronization

/// A named system thread that runs one closure to its end.
final class DedicatedThread: Sendable {
    private let handle: pthread_t
    private let joined = Mutex(false)

    /// Starts the thread, and throws if memory or threads run out.
    init(name: String, run: @escaping @Sendable () -> Void) throws(SystemCallError) {
        let start = unsafe Unmanaged.passRetained(Start(name: name, run: run))
        var handle = pthread_t()
        let result = unsafe pthread_create(
            &handle,
            nil,
            { context in
                guard let context = unsafe context else { return nil }
                unsafe Unmanaged<Start>.fromOpaque(context).takeRetainedValue().begin()
                return nil
            },
            unsafe start.toOpaque()
        )
        guard result == 0 else {
            unsafe start.release()
            throw SystemCallError(call: "pthread_create", code: result)
        }
        self.handle = handle
    }

    deinit {
        let wasJoined = joined.withLock { $0 }
        if !wasJoined { pthread_detach(handle) }
    }

    /// Waits until the closure has returned, and returns at once on the thread itself.
    func join() {
        guard pthread_equal(pthread_self(), handle) == 0 else { return }
        joined.withLock { joined in
            guard !joined else { return }
            let result = pthread_join(handle, nil)
            precondition(result == 0, "pthread_join failed with errno \(result)")
            joined = true
        }
    }

    private final class Start: Sendable {
        let name: String
        let run: @Sendable () -> Void

        init(name: String, run: @escaping @Sendable () -> Void) {
            self.name = name
            self.run = run
        }

        /// The signals that a crash of this thread raises. If they were blocked, the process would end without a crash
        /// report.
        private static let crashSignals = [SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV, SIGSYS, SIGTRAP]

        /// Names the thread, blocks the signals that are sent to the process, and runs the closure.
        ///
        /// Only the threads that wait for signals handle them. SIGPIPE must be blocked because it would end the process
        /// when OpenSSL writes to a closed connection: libcurl's own guard is off
        /// (https://curl.se/libcurl/c/CURLOPT_NOSIGNAL.html).
        func begin() {
            setName()
            var signals = sigset_t()
            unsafe sigfillset(&signals)
            for signal in Self.crashSignals { unsafe sigdelset(&signals, signal) }
            // Replaces the inherited mask, which might block the signals of a crash.
            unsafe pthread_sigmask(SIG_SETMASK, &signals, nil)
            run()
        }

        /// Names the thread for `top` and debuggers, if the system allows it.
        ///
        /// proc(5) describes the file under /proc. `pthread_setname_np` is hidden from Swift behind _GNU_SOURCE.
        private func setName() {
            let file = unsafe open("/proc/thread-self/comm", O_WRONLY | O_CLOEXEC)
            guard file >= 0 else { return }
            let written = unsafe write(file, name, name.utf8.count)
            assert(written == name.utf8.count, "the thread's name is longer than the kernel allows")
            close(file)
        }
    }
}
