private import Glibc

/// A failed call of the system and its error.
package struct SystemCallError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The call, and the file if the message needs one: "open of /etc/keys".
    package let call: String
    /// The `errno` value of the failure.
    package let code: Int32

    package init(call: String, code: Int32) {
        self.call = call
        self.code = code
    }

    /// `true` if the same call might succeed later without a change by the operator.
    package var mayPass: Bool { FileError.mayPass(code) }

    /// The system's text for the error. glibc's `strerror` is thread-safe since 2.32
    /// (https://man7.org/linux/man-pages/man3/strerror.3.html).
    package var reason: String { unsafe String(cString: strerror(code)) }

    package var description: String { "\(call) failed: \(reason)" }
}
