package import Crypto
import Telemetry

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

    /// Reads the secrets of confidential clients; empty if no file is configured.
    package static func clientSecrets(of configuration: Configuration) throws(CommandFailure) -> ClientSecretFile {
        guard let path = configuration.clientSecretFile else { return ClientSecretFile() }
        let text = try readPrivate(path, for: ClientSecretFile.flag)
        return try ClientSecretFile(parsing: text, path: path, clientIDs: configuration.clientIDs)
    }

    /// Logs the client ids in the file of client secrets that are not configured.
    func warn(about clientSecrets: ClientSecretFile) {
        let ids = clientSecrets.unconfiguredClientIDs
        guard !ids.isEmpty, let path = configuration.clientSecretFile else { return }
        diagnostics.warning(
            "client ids that are not configured have secrets, which are used for their stored grants: see doctor",
            [
                "file": path, "client_ids": ids.joined(separator: ", "),
                "without_secret": clientSecrets.clientIDsWithoutSecret.joined(separator: ", "),
            ]
        )
    }
}
