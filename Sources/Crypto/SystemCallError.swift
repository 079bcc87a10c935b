private import Glibc

/// A failed call of the system and its error.
package struct SystemCallError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The call, and the file if the message needs one: "open of /etc/keys".
    let call: String
    /// The `errno` value of the failure.
    package let code: Int32

    package init(call: String, code: Int32) {
        self.call = call
        self.code = code
    }

    /// `true` if the same call may succeed later without a change by the operator.
    package var mayPass: Bool { [EIO, EMFILE, ENFILE, ENOMEM, EAGAIN].contains(code) }

    /// The system's text for the error.
    ///
    /// glibc's `strerror` is thread-safe since 2.32 (https://man7.org/linux/man-pages/man3/strerror.3.html).
    package var reason: String { unsafe String(cString: strerror(code)) }

    package var description: String { "\(call) failed: \(reason)" }
}

/// Runs a system call, turns `-1` into an error with `errno`, and retries after `EINTR`.
@discardableResult
func systemCall<Result: SignedInteger>(_ name: String, _ body: () -> Result) throws(SystemCallError) -> Result {
    while true {
        let result = body()
        guard result == -1 else { return result }
        let code = errno
        guard code == EINTR else { throw SystemCallError(call: name, code: code) }
    }
}
