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
        return exists(passed) || needsIt && stored.contains(where: exists) ? passed : nil
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

    /// Returns `true` if a process of root must continue as the service's user, to which the files of the installation
    /// belong.
    ///
    /// What root creates there, the service cannot use, and that user can change the settings on which root would act.
    /// A worker that was started with the file's name stays root: its unit says so. So does a unit that gets
    /// credentials, which only its own user can read.
    static func needsUser(for arguments: CommandArguments, with inputs: ConfigurationInputs) -> Bool {
        let usesFiles = arguments.text == nil && arguments.command.usesServiceFiles
        guard usesFiles, !arguments.staysRoot else { return false }
        guard inputs.credentialsDirectory == nil else { return false }
        guard let named = inputs.namedFile else { return inputs.files.exists(file) }
        return isFile(named) && !arguments.runsWorker
    }

    /// `true` if a path leads to the configuration file, however it is spelled.
    static func isFile(_ path: String) -> Bool {
        path == file || FileStatus.absolute(path) == FileStatus.absolute(file)
    }
}
