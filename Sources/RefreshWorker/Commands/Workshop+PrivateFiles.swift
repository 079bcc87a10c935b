import Secrets

extension Workshop {
    /// Reads a file that holds a secret, by the one rule of who else may read or write it.
    ///
    /// Blocks, for a moment. `unreadable` is how the program ends where the system refuses the file for a reason that does
    /// not pass by itself.
    static func readPrivate(
        _ path: String,
        for flag: String,
        unreadable: ExitCode = .configuration
    ) throws(CommandFailure) -> Secret {
        do throws(PrivateFileError) {
            return try Secret.read(privateFile: path)
        } catch {
            let code: ExitCode =
                switch error.reason {
                case .system(let cause): cause.mayPass ? .inputOutput : unreadable
                case .notRegular, .tooLong, .open: .configuration
                }
            throw CommandFailure(code, "\(flag): \(error)")
        }
    }

    /// The secrets of confidential clients by their client ids, where there are any.
    func openClientSecrets() throws(CommandFailure) -> [String: Secret] {
        guard let path = configuration.clientSecretFile else { return [:] }
        let text = try Self.readPrivate(path, for: ClientSecretFile.flag)
        return try ClientSecretFile.secrets(in: text, path: path, clientIDs: configuration.clientIDs)
    }
}
