private import Glibc

/// A failed system call.
package struct SystemCallFailure: Error, Equatable, Sendable, CustomStringConvertible {
    let call: String
    package let errorNumber: Int32

    package init(call: String, errorNumber: Int32) {
        self.call = call
        self.errorNumber = errorNumber
    }

    /// `true` if the same call may succeed later without a change by the operator.
    package var mayPass: Bool { [EIO, EMFILE, ENFILE, ENOMEM, EAGAIN].contains(errorNumber) }

    var reason: String { unsafe String(cString: strerror(errorNumber)) }

    package var description: String { "\(call) failed: \(reason)" }
}
