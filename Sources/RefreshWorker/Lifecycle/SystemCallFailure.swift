private import Glibc

/// A call to the system that failed.
struct SystemCallFailure: Error, Equatable, Sendable, CustomStringConvertible {
    let call: String
    let errorNumber: Int32

    var description: String {
        let reason = unsafe String(cString: strerror(errorNumber))
        return "\(call) failed: \(reason)"
    }
}
