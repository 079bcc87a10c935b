private import Glibc

/// A call to the system that failed: which one, and why.
package struct SystemCallError: Error, Hashable, Sendable, CustomStringConvertible {
    package let call: String
    /// The `errno` of the failure.
    package let code: Int32

    /// `true` if the same call may succeed later without a change by the operator.
    package var mayPass: Bool { [EIO, EMFILE, ENFILE, ENOMEM, EAGAIN].contains(code) }

    package var description: String {
        // Glibc's strerror is safe on any thread since 2.32 (https://man7.org/linux/man-pages/man3/strerror.3.html).
        "\(call): \(unsafe String(cString: strerror(code)))"
    }
}

/// The one place that knows about `-1`, `errno` and `EINTR`.
@discardableResult
func systemCall<Result: SignedInteger>(_ name: String, _ body: () -> Result) throws(SystemCallError) -> Result {
    while true {
        let result = body()
        guard result == -1 else { return result }
        let code = errno
        guard code == EINTR else { throw SystemCallError(call: name, code: code) }
    }
}
