import Base
import Crypto
import Telemetry

extension ClientSecretFile {
    /// Reads the secrets of confidential clients, which are none if no file is configured.
    static func read(for configuration: Configuration) throws(CommandError) -> ClientSecretFile {
        guard let path = configuration.clientSecretFile else { return ClientSecretFile() }
        let text = try Secret.read(privateFile: path, for: flag)
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
    func warnOfUnconfiguredClientIDs(to diagnostics: DiagnosticLog, path: String?) {
        let ids = unconfiguredClientIDs
        guard !ids.isEmpty, let path else { return }
        diagnostics.warning(
            "client ids that are not configured have secrets, which are used for their stored grants: see doctor",
            [
                "file": path, "client_ids": ids.joined(separator: ", "),
                "without_secret": clientIDsWithoutSecret.joined(separator: ", "),
            ]
        )
    }
}
