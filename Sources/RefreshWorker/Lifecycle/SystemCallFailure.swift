private import Glibc

/// A failed system call.
struct SystemCallFailure: Error, Equatable, Sendable, CustomStringConvertible {
    let call: String
    let errorNumber: Int32

    /// `true` if the same call may succeed later without a change by the operator.
    var mayPass: Bool { [EIO, EMFILE, ENFILE, ENOMEM, EAGAIN].contains(errorNumber) }

    var reason: String { unsafe String(cString: strerror(errorNumber)) }

    var description: String { "\(call) failed: \(reason)" }
}
