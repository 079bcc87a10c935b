package import Secrets
package import WorkerConfiguration

extension CommandContext {
    /// Reads a file that holds a secret, if its permissions keep it private.
    ///
    /// Blocks for a moment. `unreadable` is the exit code if the system refuses the file permanently.
    package static func readPrivate(
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

    /// Reads the secrets of confidential clients by client id; empty if none are configured.
    package static func clientSecrets(of configuration: Configuration) throws(CommandFailure) -> [String: Secret] {
        guard let path = configuration.clientSecretFile else { return [:] }
        let text = try readPrivate(path, for: ClientSecretFile.flag)
        return try ClientSecretFile.secrets(in: text, path: path, clientIDs: configuration.clientIDs)
    }
}
