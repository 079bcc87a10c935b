private import Glibc

/// Where lines go.
package enum LineDestination: Equatable, Sendable {
    /// An open descriptor, which stays its owner's.
    case descriptor(Int32)
    /// A file, made where there is none, and followed by its name when it is rotated.
    case file(String)

    package static let standardOutput = LineDestination.descriptor(STDOUT_FILENO)
}
