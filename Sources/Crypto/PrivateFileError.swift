/// The reason why a file that should hold a secret is refused.
package struct PrivateFileError: Error, Hashable, Sendable, CustomStringConvertible {
    package enum Reason: Hashable, Sendable {
        case notRegular
        case tooLong(limit: Int)
        /// Other users may read it, or the group may write to it.
        case open(permissions: UInt32)
        case system(SystemCallError)
    }

    package let path: String
    package let reason: Reason

    /// `true` if the same file may be read later without a change by the operator.
    package var mayPass: Bool {
        if case .system(let error) = reason { error.mayPass } else { false }
    }

    package var description: String {
        switch reason {
        case .notRegular: "\(path) is not a regular file"
        case .tooLong(let limit): "\(path) is longer than \(limit) bytes"
        case .open(let permissions):
            "\(path) is open to others (mode \(String(permissions, radix: 8))): run: chmod 600 \(path)"
        case .system(let error): "\(path) cannot be read: \(error)"
        }
    }
}
