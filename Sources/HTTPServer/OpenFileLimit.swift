private import Glibc

/// The limit on the process's open files and sockets.
package enum OpenFileLimit {
    /// Raises the limit as far as the system allows, and returns it.
    ///
    /// Each connection takes a file, and the default limit of 1024 only protects programs that use select(2)
    /// (https://0pointer.net/blog/file-descriptor-limits.html).
    package static func raise() throws(HTTPServerError) -> Int {
        var limit = rlimit()
        let resource = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
        guard unsafe getrlimit(resource, &limit) == 0 else { throw refusal() }
        limit.rlim_cur = limit.rlim_max
        guard unsafe setrlimit(resource, &limit) == 0 else { throw refusal() }
        return Int(clamping: limit.rlim_cur)
    }

    private static func refusal() -> HTTPServerError {
        HTTPServerError(code: .openFiles, message: "cannot raise the limit of open files", systemError: errno)
    }
}
