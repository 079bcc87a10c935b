import Base
import Crypto
import Glibc
import GoogleOAuth
import HTTPClient
import Storage
import Telemetry

/// The checks of files other than the database, and of this machine's clocks.
extension Doctor {
    static let folderAdvice = "check that the worker's user can enter its folders"

    func fileChecks() -> [Check] {
        [
            configurationFile, keyRing, keyCommand, keyWrapCommand, clientSecret, certificates, metricsLog, credentials,
        ].compactMap(\.self) + clientIDs + [serverClient].compactMap(\.self)
    }

    /// Checks the configuration file.
    ///
    /// Its content is valid, or the program would have ended before.
    private var configurationFile: Check {
        check("configuration", orElse: Self.folderAdvice) {
            guard let path = configuration.configurationFile else {
                return .ok("from flags, environment and defaults; there is no file")
            }
            guard let status = try FileStatus.of(path) else {
                return .fault("\(path) does not exist", advice: "check the path")
            }
            guard status.kind != .folder else { return .fault("\(path) is a folder", advice: "name a file") }
            guard status.permissions & 0o022 == 0 || status.kind == .other else {
                return .warning(
                    "\(path) can be changed by others (mode \(status.mode))",
                    advice: "run: chmod go-w \(path)"
                )
            }
            guard status.owner == 0 || status.owner == geteuid() else {
                let owner = FileOwner.name(ofUser: status.owner)
                return .warning("\(path) can be changed by user \(owner)", advice: FileOwner(path)?.advice(mode: "640"))
            }
            guard status.permissions & 0o007 == 0 || !holdsPassword(path) else {
                let finding = "\(path) can be read by others (mode \(status.mode)) and holds the database's password"
                return .warning(
                    finding,
                    advice: "run: chmod 640 \(path), or put the address into a file of its own (url-file:FILE)"
                )
            }
            return .ok("\(path) is valid")
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

    private var keyRing: Check {
        check("key ring") {
            let path = context.readableKeyFile
            let keyRing = KeyRingSummary(try context.openVault().ring.current)
            if let pending = keyRing.firstPending {
                let finding = "\(path): the rotation to key \(pending) is not finished"
                return .warning(finding, advice: "run: refresh-worker keys rotate")
            }
            if let expired = keyRing.expired(at: context.time.now).first {
                return .warning(
                    "\(path): key \(expired) was retired a day ago",
                    advice: "run: refresh-worker keys retire \(expired)"
                )
            }
            let count = keyRing.entries.count.counted("key")
            let seals = "\(path) holds \(count), \(keyRing.sealingKeyID) seals"
            if let binding = keyRing.entries.first(where: { $0.role == .binds }) {
                return .ok("\(seals), \(binding.id) binds")
            }
            guard !configuration.bindsTokens else {
                return .fault(
                    "\(path) has no key that binds, which --bind-tokens needs",
                    advice: "run: refresh-worker keys add-binding"
                )
            }
            return .ok(seals)
        }
    }

    private var clientSecret: Check? {
        guard let path = configuration.clientSecretFile else { return nil }
        return check("client secret") {
            let file = try ClientSecretFile.read(for: configuration)
            if let warning = file.warning { return .warning("\(path) \(warning)") }
            let count = file.secrets.count
            return .ok(
                "\(path) holds \(count == 1 ? "the secret of 1 client id" : "the secrets of \(count) client ids")"
            )
        }
    }

    private var certificates: Check? {
        guard let path = configuration.caFile else { return nil }
        return check("certificates") {
            try context.checkAuthorities()
            return .ok("\(path) is trusted instead of the system's certificates")
        }
    }

    private var metricsLog: Check {
        check("metrics log", orElse: "check the path, and that the worker's user can enter its folders") {
            guard case .file(let path) = configuration.metricsLog else { return .ok("goes to standard output") }
            guard try FileStatus.of(path) == nil else {
                guard FileStatus.mayWrite(path) else {
                    return .fault("\(path) cannot be written\(FileOwner.advice(onDenied: path))")
                }
                return .ok("\(path) can be written")
            }
            let folder = path.parentFolder
            guard try FileStatus.of(folder)?.kind == .folder else {
                return .fault("the folder of \(path) does not exist", advice: "run: mkdir -p \(folder)")
            }
            return Self.creation(of: path, in: folder)
        }
    }

    /// Checks whether a file that does not exist can be created.
    static func creation(of path: String, in folder: String) -> Check {
        guard FileStatus.mayWrite(folder) else {
            return .fault("\(path) cannot be created", advice: "let the worker's user write to \(folder)")
        }
        return .ok("\(path) will be created in a folder that can be written")
    }

    private var credentials: Check? {
        let variable = Setting.credentialsDirectoryName
        guard let folder = context.inputs.credentialsDirectory else { return nil }
        return check("systemd credentials") {
            let exists = context.inputs.files.exists
            guard exists(folder) else {
                return .fault(
                    "\(variable) names \(folder), which does not exist",
                    advice: "unset it, or let systemd set it"
                )
            }
            let expected = ["key-ring", "client-id", "database-url", "jwt-secret", "services", "notice-secret"]
            let names = expected.filter { exists("\(folder)/\($0)") }
            guard !names.isEmpty else {
                let finding = "\(folder) holds none of \(expected.joined(separator: ", "))"
                return .warning(finding, advice: "check LoadCredential= in the unit")
            }
            return .ok("\(folder) holds \(names.joined(separator: ", "))")
        }
    }

    /// Checks the client ids: Google's have one form, other servers' can differ.
    private var clientIDs: [Check] {
        let isGoogle = Self.isGoogles(configuration.endpoints.token)
        let checks: [Check] = configuration.clientIDs.map { id in
            guard isGoogle, !id.hasSuffix(SettingValue.googleClientIDSuffix) else { return .ok(id) }
            let finding = "\(DisplayedText(id)) does not end in .apps.googleusercontent.com, as Google's ids do"
            return .warning(finding, advice: "copy the client id of your iOS app from the Google Cloud console")
        }
        let none = Check.warning(
            "none is configured, so only grants that carry their own are refreshed",
            advice: "name the client id of your iOS app with --client-id"
        )
        return (checks.isEmpty ? [none] : checks).map { $0.named("client id") }
    }

    /// Checks that the server's client belongs to the project of the app's: Google gives no code otherwise.
    private var serverClient: Check? {
        guard let id = configuration.serverClientID else { return nil }
        return check("server client id") {
            let other = configuration.clientIDs.first { other in
                GoogleProject.number(ofClientID: other) != nil && !GoogleProject.isShared(other, id)
            }
            guard let other, GoogleProject.number(ofClientID: id) != nil else {
                return .ok("\(id) exchanges the app's codes")
            }
            return .warning(
                "\(DisplayedText(id)) and the client id \(DisplayedText(other)) are of two Google Cloud projects",
                advice: "create both in one project: Google's SDK gets no code for a server of another project"
            )
        }
    }

    static func isGoogles(_ endpoint: Endpoint) -> Bool {
        let host = endpoint.host
        return host == "googleapis.com" || host.hasSuffix(".googleapis.com") || host == "accounts.google.com"
    }
}
