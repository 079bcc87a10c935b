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

    /// The secrets of confidential clients by their client ids, where there are any.
    func openClientSecrets() throws(CommandFailure) -> [String: Secret] {
        guard let path = configuration.clientSecretFile else { return [:] }
        let text = try Self.readPrivate(path, for: ClientSecretFile.flag)
        return try ClientSecretFile.secrets(in: text, path: path, clientIDs: configuration.clientIDs)
    }
}

extension PrivateFileError {
    /// Whether the system refused the file, whatever it may hold.
    fileprivate var isUnreadable: Bool {
        if case .system = reason { true } else { false }
    }
}
