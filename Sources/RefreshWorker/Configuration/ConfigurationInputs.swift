import Secrets

/// Everything that a configuration is made of, so that a test can hand in any machine it likes.
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

/// How files are read.
struct FileReader: Sendable {
    /// Why a file could not be read, in words for the user.
    struct Failure: Error, Equatable, Sendable {
        let reason: String
        /// Whether there is no such file, which for an optional one is no failure.
        let isMissing: Bool
        /// `true` if the same call may succeed later without a change by the operator.
        var mayPass = false
    }

    let read: @Sendable (_ path: String) throws(Failure) -> [UInt8]
    /// Reads a file that holds a secret, unless strangers may read it too.
    let readPrivate: @Sendable (_ path: String) throws(Failure) -> Secret
    let exists: @Sendable (_ path: String) -> Bool
}
