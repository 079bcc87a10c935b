import Secrets

/// Everything that a configuration depends on, so that tests can simulate any machine.
package struct ConfigurationInputs: Sendable {
    /// A setting given on the command line.
    package struct Flag: Equatable, Sendable {
        let name: Setting.Name
        let value: String
    }

    let flags: [Flag]
    package let environment: [String: String]
    package let files: FileReader

    package init(flags: [Flag], environment: [String: String], files: FileReader) {
        self.flags = flags
        self.environment = environment
        self.files = files
    }
}

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
