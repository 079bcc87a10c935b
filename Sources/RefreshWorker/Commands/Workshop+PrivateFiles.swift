import Secrets

extension Workshop {
    /// Reads a file that holds a secret, by the one rule of who else may read or write it.
    ///
    /// Blocks, for a moment. `unreadable` is how the program ends where the system refuses the file.
    static func readPrivate(
        _ path: String,
        for flag: String,
        unreadable: ExitCode = .configuration
    ) throws(CommandFailure) -> Secret {
        do throws(PrivateFileError) {
            return try Secret.read(privateFile: path)
        } catch {
            throw CommandFailure(error.isUnreadable ? unreadable : .configuration, "\(flag): \(error)")
        }
    }

    /// The secret of a confidential client, where there is one.
    func openClientSecret() throws(CommandFailure) -> Secret? {
        guard let path = configuration.clientSecretFile else { return nil }
        let flag = "--client-secret-file"
        guard let secret = try Self.readPrivate(path, for: flag).lines.first else {
            throw CommandFailure(.configuration, "\(flag): \(path) is empty: put the client's secret into it")
        }
        return secret
    }
}

extension PrivateFileError {
    /// Whether the system refused the file, whatever it may hold.
    fileprivate var isUnreadable: Bool {
        if case .system = reason { true } else { false }
    }
}
