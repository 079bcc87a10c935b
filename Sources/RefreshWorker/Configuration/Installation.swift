import Base
import HTTPServer
import Telemetry

/// The configuration file and the user of the installed service.
enum Installation {
    static let file = "/etc/refresh-worker/refresh-worker.conf"
    /// A fixed name: to find the owner of the service's files, root would have to read the configuration.
    static let user = "refresh-worker"

    /// The configuration files to look for if none is named, in this order.
    ///
    /// Root has no file of its own: `HOME` might be another user's folder, and the service's user could not read it.
    static func files(isRoot: Bool, environment: [String: String]) -> [String] {
        guard !isRoot, let home = environment["HOME"], home.hasPrefix("/") else { return [file] }
        return ["\(home)/.config/refresh-worker/refresh-worker.conf", file]
    }

    /// Returns the file with the address of the database, if systemd passes that to the service.
    ///
    /// It exists only while the service runs. Otherwise root, who sees its origin, must not take the default database
    /// for the service's, so reading it fails. `keys generate` only looks for tokens there, and the worker checks the
    /// new ring against its database.
    static func database(for command: Command, exists: (String) -> Bool) -> String? {
        let passed = credentials + "/database-url"
        let needsIt = command.settings.contains(.database) && command.words != Command.generateKeys.words
        if exists(passed) { return passed }
        return needsIt && stored.contains(where: exists) ? passed : nil
    }

    /// Returns the key ring that systemd passes to the running service, if it does.
    static func keyRing(exists: (String) -> Bool) -> String? {
        let passed = credentials + "/key-ring"
        return exists(passed) ? passed : nil
    }

    /// The folder of the files that systemd passes to the running service.
    static let credentials = "/run/credentials/refresh-worker.service"
    /// Where systemd looks for the address of the database.
    private static let stored = ["", ".encrypted"].map { "/etc/credstore\($0)/refresh-worker.database-url" }

    /// What to do while the file with the address of the database is missing.
    static let advice = """
        it exists only while the service runs. Start the service, or run as root: \
        REFRESH_WORKER_DATABASE="$(cat \(stored[0]))" refresh-worker … (for an encrypted one: \
        "$(systemd-creds decrypt --name=database-url \(stored[1]))")
        """

    /// Returns the first file of a command that another user than root can change or replace, or `nil` if root alone
    /// can.
    ///
    /// A process of root must not use such a file: that user would choose what root does and where it writes, and could
    /// not use what root creates. The file counts whether it exists or not, because it can be moved away and back. The
    /// configuration is only read here if it is root's own. A unit that gets credentials has chosen its user itself.
    static func foreignFile(
        for arguments: CommandArguments,
        with inputs: ConfigurationInputs,
        onlyRootCanChange: (String) -> Bool
    ) -> String? {
        guard arguments.readsConfiguration, !arguments.staysRoot, inputs.credentialsDirectory == nil else { return nil }
        let settings = inputs.namedFile ?? file
        guard onlyRootCanChange(settings) else { return settings }
        // The command reports what is wrong with it.
        guard let configuration = try? Configuration(inputs) else { return nil }
        let databases = arguments.command.options.filter(\.isDatabase).compactMap { option in
            arguments[option.name].flatMap { try? DatabaseLocation($0).file }
        }
        let files = arguments.command.usedFiles(of: configuration) + databases
        return files.first { !onlyRootCanChange($0) }
    }

    /// `true` if a path leads to the configuration file, however it is spelled.
    static func isFile(_ path: String) -> Bool {
        path == file || PathResolver.absolute(path) == PathResolver.absolute(file)
    }
}

extension Command {
    /// The configured files that the command can read or write.
    fileprivate func usedFiles(of configuration: Configuration) -> [String] {
        var files = [configuration.caFile]
        if settings.contains(.database) { files.append(configuration.database.file) }
        if settings.contains(.keyFile) { files.append(configuration.keyFile) }
        if settings.contains(.keyCommand) { files.append(configuration.keyCommand?.programFile) }
        if settings.contains(.keyWrapCommand) { files.append(configuration.keyWrapCommand?.programFile) }
        if settings.contains(.servicesFile) { files.append(configuration.servicesFile) }
        if settings.contains(.noticeSecretFile) { files.append(configuration.noticeSecretFile) }
        if settings.contains(.clientSecretFile) { files.append(configuration.clientSecretFile) }
        if settings.contains(.jwtSecretFile) { files.append(configuration.jwtSecretFile) }
        if settings.contains(.internalKey) {
            files += [configuration.internalCertificateFile, configuration.internalKeyFile]
        }
        if settings.contains(.metricsLog), case .file(let path) = configuration.metricsLog {
            files.append(path)
        }
        if settings.contains(.appKeys) { files += configuration.appKeys.map(\.path) }
        if settings.contains(.listenInternal) { files += configuration.internalListeners.map(\.path) }
        return files.compactMap(\.self)
    }
}

extension KeyLocation {
    /// The path of a file with keys.
    fileprivate var path: String? {
        if case .file(let path) = self { path } else { nil }
    }
}

extension ListenerLocation {
    /// The path of a socket that the worker makes.
    fileprivate var path: String? {
        if case .own(.unix(let path, _)) = self { path } else { nil }
    }
}
