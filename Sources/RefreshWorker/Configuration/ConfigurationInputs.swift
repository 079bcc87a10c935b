import Secrets

/// Everything that a configuration depends on, so that tests can simulate any machine.
struct ConfigurationInputs: Sendable {
    /// A setting given on the command line.
    struct Flag: Equatable, Sendable {
        let name: Setting.Name
        let value: String
    }

    let flags: [Flag]
    let environment: [String: String]
    let files: FileReader
}

/// The access to files.
struct FileReader: Sendable {
    /// The reason why a file could not be read, for the user.
    struct Failure: Error, Equatable, Sendable {
        let reason: String
        /// `true` if the file does not exist, which is not a failure for an optional file.
        let isMissing: Bool
        /// `true` if the same call may succeed later without a change by the operator.
        var mayPass = false
    }

    let read: @Sendable (_ path: String) throws(Failure) -> [UInt8]
    /// Reads a file that holds a secret; refuses it if other users may read it.
    let readPrivate: @Sendable (_ path: String) throws(Failure) -> Secret
    let exists: @Sendable (_ path: String) -> Bool
}
