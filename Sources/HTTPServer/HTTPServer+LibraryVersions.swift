private import CGnuTLS
private import CMicroHTTPD
private import Glibc

extension HTTPServer {
    /// The versions of the libraries that this process runs with.
    package static var microHTTPVersion: String { unsafe String(cString: MHD_get_version()) }

    package static var gnuTLSVersion: String {
        guard let version = unsafe gnutls_check_version(nil) else { return "" }
        return unsafe String(cString: version)
    }

    /// Raises the limit on the process's open files and sockets as far as the system allows, and returns it.
    ///
    /// Each connection takes a file, and the default limit of 1024 only protects programs that use select(2)
    /// (https://0pointer.net/blog/file-descriptor-limits.html).
    package static func raiseOpenFileLimit() throws(HTTPServerError) -> Int {
        var limit = rlimit()
        let resource = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
        var result = unsafe getrlimit(resource, &limit)
        limit.rlim_cur = limit.rlim_max
        if result == 0 { result = unsafe setrlimit(resource, &limit) }
        guard result == 0 else {
            throw HTTPServerError(code: .openFiles, message: "cannot raise the limit of open files", systemError: errno)
        }
        return Int(clamping: limit.rlim_cur)
    }
}
