import Base
import Crypto
import GoogleOAuth
import HTTPClient
import Storage
import Telemetry
import Worker

/// The checks of files other than the database.
extension Doctor {
    private var configuration: Configuration { context.configuration }

    func fileDiagnoses() -> [Diagnosis] {
        [configurationFile, keyRing, clientSecret, certificates, metricsLog, credentials].compactMap(\.self)
            + clientIDs + [serverClient].compactMap(\.self)
    }

    /// Checks the configuration file.
    ///
    /// Its content is valid, or the program would have ended before.
    private var configurationFile: Diagnosis {
        let subject = "configuration"
        guard let path = configuration.configurationFile else {
            return .ok(subject, "from flags, environment and defaults; no --config file")
        }
        return inspect(subject, path) { status in
            guard status.permissions & 0o022 == 0 else {
                let advice = "run: chmod go-w \(path)"
                return .warning(subject, "\(path) may be changed by others (mode \(status.mode))", advice: advice)
            }
            guard status.permissions & 0o007 == 0 || !holdsPassword(path) else {
                let advice = "run: chmod 640 \(path), or put the address into a file of its own (url-file:FILE)"
                return .warning(
                    subject,
                    "\(path) can be read by others (mode \(status.mode)) and holds the database's password",
                    advice: advice
                )
            }
            return .ok(subject, "\(path) is valid")
        }
    }

    /// `true` if the file itself sets a database address with a password.
    private func holdsPassword(_ path: String) -> Bool {
        do {
            let lines = EnvironmentFile(parsing: try context.inputs.files.read(path)).entries
            let addresses = lines.filter { $0.key == Setting.Name.database.environmentName }
            return try addresses.contains { try DatabaseLocation($0.value).holdsPassword }
        } catch {
            // An invalid address has ended the program before, and another check reports a file that is missing.
            return false
        }
    }

    private var keyRing: Diagnosis {
        let subject = "key ring"
        do {
            let keyRing = KeyRingSummary(try context.openVault().ring.current)
            if let pending = keyRing.firstPending {
                let state = "the rotation to key \(pending) is not finished"
                return .warning(
                    subject,
                    "\(configuration.keyFile): \(state)",
                    advice: "run: refresh-worker keys rotate"
                )
            }
            if let expired = keyRing.expired(at: context.time.now).first {
                let advice = "run: refresh-worker keys retire \(expired)"
                return .warning(
                    subject,
                    "\(configuration.keyFile): key \(expired) was retired a day ago",
                    advice: advice
                )
            }
            let count = keyRing.entries.count
            let keys = count == 1 ? "1 key" : "\(count) keys"
            return .ok(subject, "\(configuration.keyFile) holds \(keys), \(keyRing.sealingKeyID) seals")
        } catch {
            return .fault(subject, "\(error)")
        }
    }

    private var clientSecret: Diagnosis? {
        guard let path = configuration.clientSecretFile else { return nil }
        let subject = "client secret"
        do throws(CommandFailure) {
            let file = try CommandContext.clientSecrets(of: configuration)
            if let warning = file.warning { return .warning(subject, "\(path) \(warning)") }
            let count = file.secrets.count
            return .ok(
                subject,
                "\(path) holds \(count == 1 ? "the secret of 1 client id" : "the secrets of \(count) client ids")"
            )
        } catch {
            return .fault(subject, "\(error)")
        }
    }

    private var certificates: Diagnosis? {
        guard let path = configuration.caFile else { return nil }
        return check("certificates") { () throws in
            try context.checkAuthorities()
            return "\(path) is trusted instead of the system's certificates"
        }
    }

    private var metricsLog: Diagnosis {
        let subject = "metrics log"
        guard case .file(let path) = configuration.metricsLog else { return .ok(subject, "goes to standard output") }
        let folder = FileStatus.folder(of: path)
        do {
            guard try FileStatus.of(path) == nil else {
                return FileStatus.mayWrite(path)
                    ? .ok(subject, "\(path) can be written")
                    : .fault(subject, "\(path) cannot be written", advice: "let the worker's user write to it")
            }
            guard try FileStatus.of(folder)?.kind == .folder else {
                return .fault(subject, "the folder of \(path) does not exist", advice: "run: mkdir -p \(folder)")
            }
            return FileStatus.mayWrite(folder)
                ? .ok(subject, "\(path) will be created in a folder that can be written")
                : .fault(subject, "\(path) cannot be created", advice: "let the worker's user write to \(folder)")
        } catch {
            return .fault(
                subject,
                "\(error)",
                advice: "check the path, and that the worker's user may enter its folders"
            )
        }
    }

    private var credentials: Diagnosis? {
        let subject = "systemd credentials"
        guard let folder = context.inputs.environment[Setting.credentialsDirectoryName], !folder.isEmpty else {
            return nil
        }
        let exists = context.inputs.files.exists
        let expected = ["key-ring", "client-id", "database-url", "jwt-secret", "services", "notice-secret"]
        let names = expected.filter { exists("\(folder)/\($0)") }
        guard exists(folder) else {
            return .fault(
                subject,
                "\(Setting.credentialsDirectoryName) names \(folder), which does not exist",
                advice: "unset it, or let systemd set it"
            )
        }
        guard !names.isEmpty else {
            return .warning(
                subject,
                "\(folder) holds none of \(expected.joined(separator: ", "))",
                advice: "check LoadCredential= in the unit"
            )
        }
        return .ok(subject, "\(folder) holds \(names.joined(separator: ", "))")
    }

    /// Checks the client ids: Google's have one form, other servers' may differ.
    private var clientIDs: [Diagnosis] {
        let subject = "client id"
        guard !configuration.clientIDs.isEmpty else {
            let advice = "name the client id of your iOS app with --client-id"
            return [
                .warning(
                    subject,
                    "none is configured, so only grants that carry their own are refreshed",
                    advice: advice
                )
            ]
        }
        let isGoogle = Self.isGoogles(configuration.endpoints.token)
        return configuration.clientIDs.map { id in
            guard isGoogle, !id.hasSuffix(SettingValue.googleClientIDSuffix) else { return .ok(subject, id) }
            return .warning(
                subject,
                "\(DisplayedText(id)) does not end in .apps.googleusercontent.com, as Google's ids do",
                advice: "copy the client id of your iOS app from the Google Cloud console"
            )
        }
    }

    /// Checks that the server's client belongs to the project of the app's: Google gives no code otherwise.
    private var serverClient: Diagnosis? {
        guard let id = configuration.serverClientID else { return nil }
        let subject = "server client id"
        let other = configuration.clientIDs.first { other in
            GoogleProject.number(ofClientID: other) != nil && !GoogleProject.isShared(other, id)
        }
        guard let other, GoogleProject.number(ofClientID: id) != nil else {
            return .ok(subject, "\(id) exchanges the app's codes")
        }
        return .warning(
            subject,
            "\(DisplayedText(id)) and the client id \(DisplayedText(other)) are of two Google Cloud projects",
            advice: "create both in one project: Google's SDK gets no code for a server of another project"
        )
    }

    static func isGoogles(_ endpoint: Endpoint) -> Bool {
        let host = endpoint.host
        return host == "googleapis.com" || host.hasSuffix(".googleapis.com") || host == "accounts.google.com"
    }

    private func inspect(_ subject: String, _ path: String, _ check: (FileStatus) -> Diagnosis) -> Diagnosis {
        do {
            guard let status = try FileStatus.of(path) else {
                return .fault(subject, "\(path) does not exist", advice: "check the path")
            }
            guard status.kind != .folder else { return .fault(subject, "\(path) is a folder", advice: "name a file") }
            return check(status)
        } catch {
            return .fault(subject, "\(error)", advice: "check that the worker's user may enter its folders")
        }
    }
}
