private import Glibc

package enum LineDestination: Equatable, Sendable {
    /// An open descriptor, which its owner keeps.
    case descriptor(Int32)
    /// A file, created if missing, and followed by its name when it is rotated.
    case file(String)

    package static let standardOutput = LineDestination.descriptor(STDOUT_FILENO)
}
