private import Glibc

/// The listening sockets that systemd passes at start (https://man7.org/linux/man-pages/man3/sd_listen_fds.3.html).
extension HTTPServer {
    /// Returns the inherited sockets by the names that their units give them (`FileDescriptorName=`).
    ///
    /// The result is empty if there are none, or if the environment is meant for another process.
    package static func inheritedSockets(
        environment: [String: String],
        processID: Int32,
        first: Int32 = 3
    ) throws(HTTPServerError) -> [String: Int32] {
        let environment = environment.filter { !$0.value.isEmpty }
        guard environment["LISTEN_PID"].flatMap(Int32.init) == processID, let text = environment["LISTEN_FDS"] else {
            return [:]
        }
        guard let count = Int32(text), (0...1024).contains(count) else {
            throw refusal("LISTEN_FDS is not a number of sockets")
        }
        let names = environment["LISTEN_FDNAMES"]?.split(separator: ":", omittingEmptySubsequences: false) ?? []
        var sockets: [String: Int32] = [:]
        for index in 0..<count {
            let name = names.indices.contains(Int(index)) ? String(names[Int(index)]) : "unknown"
            guard sockets.updateValue(first + index, forKey: name) == nil else {
                throw refusal("two inherited sockets are named \(name): give each its own FileDescriptorName=")
            }
            try adopt(first + index)
        }
        return sockets
    }

    /// Checks that the descriptor is a listening stream socket, and sets the flags that the server needs.
    static func adopt(_ descriptor: Int32) throws(HTTPServerError) {
        guard value(of: SO_TYPE, in: descriptor) == Int32(SOCK_STREAM.rawValue),
            value(of: SO_ACCEPTCONN, in: descriptor) == 1
        else {
            throw refusal("the inherited descriptor \(descriptor) is not a listening stream socket")
        }
        let flags = fcntl(descriptor, F_GETFL)
        guard flags >= 0, fcntl(descriptor, F_SETFL, flags | O_NONBLOCK) == 0,
            fcntl(descriptor, F_SETFD, FD_CLOEXEC) == 0
        else {
            throw refusal("cannot set up the inherited descriptor \(descriptor)", code: errno)
        }
    }

    private static func value(of option: Int32, in descriptor: Int32) -> Int32? {
        var value: Int32 = 0
        var size = socklen_t(MemoryLayout<Int32>.size)
        return unsafe getsockopt(descriptor, SOL_SOCKET, option, &value, &size) == 0 ? value : nil
    }

    private static func refusal(_ message: String, code reason: Int32 = 0) -> HTTPServerError {
        HTTPServerError(code: .badInheritedSocket, message: message, systemError: reason)
    }
}
