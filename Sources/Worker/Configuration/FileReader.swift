import Crypto

/// The access to files.
package struct FileReader: Sendable {
    /// The reason why a file could not be read, for the user.
    package struct Failure: Error, Equatable, Sendable {
        package let reason: String
        /// `true` if the file does not exist, which is not a failure for an optional file.
        let isMissing: Bool
        /// `true` if the same call may succeed later without a change by the operator.
        package var mayPass = false
    }

    package let read: @Sendable (_ path: String) throws(Failure) -> [UInt8]
    /// Reads a file that holds a secret; refuses it if other users may read it.
    let readPrivate: @Sendable (_ path: String) throws(Failure) -> Secret
    package let exists: @Sendable (_ path: String) -> Bool
}
