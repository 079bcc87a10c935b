import Base
import Crypto
import Telemetry

extension CommandContext {
    /// Reads a file that a setting names.
    func read(_ path: String, for flag: String, orElse advice: String = "") throws(CommandError) -> [UInt8] {
        do throws(InputError) {
            return try inputs.files.read(path)
        } catch {
            let code: ExitCode = error.mayPass ? .inputOutput : .configuration
            throw CommandError(code, "\(flag): \(path) \(error.message)\(advice)")
        }
    }

    /// Reads a file that holds a secret, if its permissions keep it private.
    ///
    /// Blocks for a moment. `unreadable` is the exit code if the system refuses the file permanently.
    static func readPrivate(
        _ path: String,
        for flag: String,
        unreadable: ExitCode = .configuration
    ) throws(CommandError) -> Secret {
        do throws(FileError) {
            return try Secret.read(privateFile: path)
        } catch {
            let code: ExitCode =
                switch error.kind {
                case .system: error.mayPass ? .inputOutput : unreadable
                default: .configuration
                }
            throw CommandError(code, "\(flag): \(error)")
        }
    }

    /// Reads the secrets of confidential clients, which are none if no file is configured.
    static func clientSecrets(of configuration: Configuration) throws(CommandError) -> ClientSecretFile {
        guard let path = configuration.clientSecretFile else { return ClientSecretFile() }
        let text = try readPrivate(path, for: ClientSecretFile.flag)
        let file = try ClientSecretFile(parsing: text, path: path, clientIDs: configuration.allClientIDs)
        if let id = configuration.serverClientID, file.secrets[id] == nil {
            throw CommandError(
                .configuration,
                """
                --server-client-id: \(path) has no secret of \(DisplayedText(id)): add a line with this client id, a blank and \
                its secret, which the Google Cloud console shows at the client of your server
                """
            )
        }
        return file
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
